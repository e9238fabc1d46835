package clusterlimit

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
)

// A server that has come back with an empty disk has no bucket. Members failed until they were
// restarted, and said that the engine did not answer.
func TestALostBucketIsMadeAnew(t *testing.T) {
	t.Parallel()
	m := join(t, Config{URL: engine(t), Concurrency: 10, FailClosed: true})
	js, err := jetstream.New(m.conn)
	check(t, err)
	check(t, js.DeleteStream(await.Context(t, "an answer"), "KV_spillway"))
	await.True(t, "a failure", func() bool { return m.reading().failures > 0 })
	await.True(t, "it has its lease again", func() bool { s := m.Stats(); return s.Standing == "held" && s.Slots == 10 && s.Err == nil })
}

// Close dereferenced nil if the member had a new connection and no bucket.
func TestCloseWithoutABucketSaysSo(t *testing.T) {
	t.Parallel()
	s := start(t, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	m := join(t, Config{URL: s.ClientURL(), Concurrency: 10})
	check(t, s.DisableJetStream())
	m.conn.Close()
	await.True(t, "no bucket", func() bool {
		err := m.Stats().Err
		return err != nil && strings.Contains(err.Error(), `bucket "spillway"`)
	})
	if err := m.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "ends by itself") {
		t.Error(err)
	}
}

// lose removes values of the store: those with the keys, or all.
func (f *fleet) lose(keys ...string) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	maps.DeleteFunc(f.store.values, func(key string, _ fakeEntry) bool { return len(keys) == 0 || slices.Contains(keys, key) })
}

// A member that joined after the loss of all values, while nobody was in the first group, made a budget
// of its own beside the groups: 20,000 of 10,000 were used for ever.
func TestALostBudgetIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, store: newFakeStore(2 * time.Millisecond), total: 1000}
		f.join(60, Config{Rate: f.total})
		defer f.end()
		for _, m := range f.members {
			if m.group == budget.FirstGroup {
				m.die()
				m.dead = true
			}
		}
		closed := func() bool {
			f.store.mu.Lock()
			defer f.store.mu.Unlock()
			return f.state("root.default").Of(budget.FirstGroup).Token == 0
		}
		if took := f.run(time.Minute, closed); took >= time.Minute {
			t.Fatal("the first group keeps its account")
		}
		f.lose()
		for range 10 * time.Second / fleetStep {
			f.elapse()
		}
		f.join(1, Config{Rate: f.total})
		f.run(20*time.Second, func() bool { return false }) // checks the sums
		if n := f.rate(func(int, *fleetMember) bool { return true }); n < f.total*9/10 {
			t.Errorf("%d of %d", n, f.total)
		}
	})
}

// A root that cannot be read ends the division among groups, and nobody said so.
func TestARootThatCannotBeReadIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Log
		f := &fleet{t: t, store: newFakeStore(2 * time.Millisecond), total: 1000}
		f.join(50, Config{Rate: f.total, Logger: log.Logger()})
		defer f.end()
		f.run(5*time.Second, func() bool { return false })
		named := func() bool {
			return slices.ContainsFunc(f.members, func(m *fleetMember) bool {
				err := m.Stats().Err
				return err != nil && strings.Contains(err.Error(), `"root.default" of bucket "spillway" is no budget`)
			})
		}
		f.store.mu.Lock()
		f.store.values["root.default"] = fakeEntry{value: []byte("mine"), revision: f.store.values["root.default"].revision + 1}
		f.broken = true
		f.store.mu.Unlock()
		if f.run(time.Minute, named) >= time.Minute || log.With("cannot divide the budget") == "" {
			t.Error("nobody names it")
		}
		f.lose("root.default")
		for range time.Minute / fleetStep {
			f.elapse()
		}
		if named() {
			t.Error("it is named after it was deleted")
		}
	})
}

// A visit of the root had what a renewal had left of a third of a lease. With a long round trip that
// was too little, and all groups kept what they had for ever.
func TestGroupsDivideOverALongRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, store: newFakeStore(2 * time.Millisecond), total: 1000}
		f.join(50, Config{Rate: f.total})
		defer f.end()
		left := map[string]int{}
		for _, m := range f.members {
			if left[m.group]++; left[m.group] > 1 {
				_ = m.Close(t.Context())
				m.dead = true
			}
		}
		f.run(10*time.Second, func() bool { return false })
		f.store.mu.Lock()
		f.store.trip = 400 * time.Millisecond
		f.store.mu.Unlock()
		first := func(_ int, m *fleetMember) bool { return m.group == budget.FirstGroup }
		for i, m := range f.members {
			if first(i, m) {
				m.demand = 2000
			}
		}
		if took := f.run(2*time.Minute, func() bool { return f.rate(first) > f.total*8/10 }); took >= 2*time.Minute {
			t.Errorf("the first group has %d of %d", f.rate(first), f.total)
		}
	})
}
