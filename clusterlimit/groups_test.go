package clusterlimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
	"github.com/spillway-go/spillway/internal/soak"
)

// What a request and its answer take beside the value, in bytes, with the lines of the protocol.
const (
	readBytes  = 320
	writeBytes = 320
)

// fakeStore is a key/value bucket in memory behind a network with delays.
type fakeStore struct {
	trip time.Duration // of a request and its answer, at most

	mu     sync.Mutex
	values map[string]fakeEntry
	random *rand.Rand
}

type fakeEntry struct {
	jetstream.KeyValueEntry
	value    []byte
	revision uint64
}

func (e fakeEntry) Value() []byte    { return e.value }
func (e fakeEntry) Revision() uint64 { return e.revision }

func newFakeStore(trip time.Duration) *fakeStore {
	return &fakeStore{trip: trip, values: map[string]fakeEntry{}, random: rand.New(rand.NewPCG(1, 2))}
}

func (s *fakeStore) way(ctx context.Context) error {
	s.mu.Lock()
	d := s.trip/4 + time.Duration(s.random.Int64N(int64(s.trip/4)))
	s.mu.Unlock()
	return sleep(ctx, d)
}

// line is one member's way to a fakeStore, which counts its bytes.
type line struct {
	*fakeStore
	bytes int
}

func (l *line) used() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

func (l *line) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := l.way(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	e, found := l.values[key]
	l.bytes += readBytes + len(e.value)
	l.mu.Unlock()
	if err := l.way(ctx); err != nil {
		return nil, err
	}
	if !found {
		return nil, jetstream.ErrKeyNotFound
	}
	return e, nil
}

func (l *line) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return l.Update(ctx, key, value, 0)
}

func (l *line) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := l.way(ctx); err != nil {
		return 0, err
	}
	l.mu.Lock()
	l.bytes += writeBytes + len(value)
	won := l.values[key].revision == revision
	if won {
		l.values[key] = fakeEntry{value: value, revision: revision + 1}
	}
	l.mu.Unlock()
	if err := l.way(ctx); err != nil {
		return 0, err
	}
	if !won {
		return 0, jetstream.ErrKeyExists
	}
	return revision + 1, nil
}

// fleet is many members in virtual time, with a rate as their budget.
type fleet struct {
	t       *testing.T
	store   *fakeStore
	total   int
	members []*fleetMember
	broken  bool // the root cannot be read
}

type fleetMember struct {
	*Member
	line   *line
	demand int // requests a second
	dead   bool
}

// join makes n members join at the same time, and returns how long the last one took.
func (f *fleet) join(n int, cfg Config) time.Duration {
	began := time.Now()
	var joining sync.WaitGroup
	for range n {
		cfg, err := cfg.check()
		if err != nil {
			f.t.Fatal(err)
		}
		m := &fleetMember{Member: newMember(cfg), line: &line{fakeStore: f.store}, demand: 10}
		m.kv = m.line
		f.members = append(f.members, m)
		joining.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := m.first(ctx); err != nil {
				f.t.Error(err)
			}
			m.begin()
		})
	}
	joining.Wait()
	return time.Since(began)
}

const fleetStep = 250 * time.Millisecond

// run lets the time pass until a condition holds, and returns how long that took.
func (f *fleet) run(most time.Duration, done func() bool) time.Duration {
	began := time.Now()
	for time.Since(began) < most && !done() {
		f.elapse()
		f.check()
	}
	return time.Since(began)
}

// elapse lets a fleetStep pass, with its demand.
func (f *fleet) elapse() {
	for _, m := range f.members {
		if !m.dead {
			for range m.demand / int(time.Second/fleetStep) {
				_ = m.Allow(1)
			}
		}
	}
	time.Sleep(fleetStep)
}

// end ends all members.
func (f *fleet) end() {
	for _, m := range f.members {
		if !m.dead {
			m.die()
		}
	}
}

// check checks the invariants: the usable rates sum to at most the total, and so do the leases of all
// groups and the accounts of the root.
func (f *fleet) check() {
	f.t.Helper()
	usable := 0
	for _, m := range f.members {
		m.mu.Lock()
		b := m.holder.Bound(m.now())
		m.mu.Unlock()
		if b.Standing == budget.Held {
			usable += b.Amounts[budget.Rate]
		}
	}
	if usable > f.total {
		f.t.Fatalf("%d of %d are usable", usable, f.total)
	}
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if f.broken {
		return
	}
	leased, root := 0, f.state("root.default")
	for key := range f.store.values {
		if s := f.state(key); key != "root.default" {
			leased += s.Totals[budget.Rate] - min(s.Free(budget.Rate), 0)
		}
	}
	if leased > f.total || root.Free(budget.Rate) < 0 {
		f.t.Fatalf("%d of %d are in groups, and %d are free", leased, f.total, root.Free(budget.Rate))
	}
}

// state returns a value of the store. The caller holds the lock of the store.
func (f *fleet) state(key string) budget.State {
	e, found := f.store.values[key]
	if !found {
		return budget.State{}
	}
	s, err := budget.Parse(e.value)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// groups returns how many groups the root knows.
func (f *fleet) groups() int {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return len(f.state("root.default").Leases)
}

// rate returns the sum of the usable rates of some members.
func (f *fleet) rate(of func(i int, m *fleetMember) bool) (n int) {
	for i, m := range f.members {
		if of(i, m) && !m.dead {
			n += m.Stats().Rate
		}
	}
	return n
}

func TestAThousandMembersCostLittle(t *testing.T) {
	for _, members := range []int{30, 100, 1000} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			if members == 1000 {
				soak.WithoutRace(t)
			}
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{t: t, store: newFakeStore(2 * time.Millisecond), total: 100 * members}
				t.Logf("all have joined after %v", f.join(members, Config{Rate: f.total}))
				defer f.end()
				all := func(int, *fleetMember) bool { return true }
				hot := func(i int, _ *fleetMember) bool { return i%10 == 0 }
				cold := func(i int, _ *fleetMember) bool { return i%10 == 1 }
				t.Logf("all is leased after %v", f.run(time.Minute, func() bool { return f.rate(all) > f.total*9/10 }))
				f.run(10*time.Second, func() bool { return false })
				before := make([]int, members)
				for i, m := range f.members {
					before[i] = m.line.used()
				}
				took := f.run(20*time.Second, func() bool { return false })
				costs := make([]float64, members)
				for i, m := range f.members {
					costs[i] = float64(m.line.used()-before[i]) / took.Seconds()
				}
				slices.Sort(costs)
				t.Logf("%d members: %.0f bytes a second each in the middle, %.0f at most; %d groups", members, costs[members/2], costs[members-1], f.groups())
				if members > budget.MostAlone && costs[members-1] > 5000 {
					t.Errorf("a member takes %.0f bytes a second", costs[members-1])
				}
				for i, m := range f.members {
					if hot(i, m) {
						m.demand = 2000
					}
				}
				took = f.run(time.Minute, func() bool { return f.rate(hot) > f.total*7/10 })
				t.Logf("a tenth of the members has seven tenths after %v", took)
				if took >= time.Minute {
					t.Errorf("a tenth of the members wants twice the budget, and has %d of %d", f.rate(hot), f.total)
				}
				for i, m := range f.members {
					if hot(i, m) {
						m.die()
						m.dead = true
					} else if cold(i, m) {
						m.demand = 2000
					}
				}
				took = f.run(time.Minute, func() bool { return f.rate(cold) > f.total*7/10 })
				t.Logf("they die, and as many others have seven tenths after %v", took)
				if took >= time.Minute {
					t.Errorf("a tenth of the members has died, and another has %d of %d", f.rate(cold), f.total)
				}
			})
		})
	}
}

// Members of groups take turns where there are fewer slots than members. The turns of a group began
// at scattered places: one of 93 members waited for 14 minutes for one of ten slots, and 37 had none
// in half an hour of a single slot.
func TestMembersOfGroupsTakeTurns(t *testing.T) {
	soak.WithoutRace(t)
	for total, most := range map[int]time.Duration{1: 10 * time.Minute, 10: 2 * time.Minute} {
		t.Run(fmt.Sprint(total), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{t: t, store: newFakeStore(2 * time.Millisecond), total: total}
				f.join(50, Config{Rate: f.total})
				defer f.end()
				had := make([]bool, len(f.members))
				took := f.run(most, func() bool {
					for i, m := range f.members {
						had[i] = had[i] || m.Stats().Rate > 0
					}
					return !slices.Contains(had, false)
				})
				t.Logf("each has had a turn after %v", took)
				if took >= most {
					t.Errorf("after %v: %v", took, had)
				}
			})
		})
	}
}
