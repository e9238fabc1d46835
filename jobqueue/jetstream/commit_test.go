package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
)

var errFull, errAway, errBad, errMany = errors.New("full"), errors.New("away"), errors.New("bad"), errors.New("too many")

// store is a slow, simple model of an engine. It stores a whole batch or nothing, and may lose its
// answer.
type store struct {
	room    int
	bytes   int // room for so many bytes
	most    int // entries in a batch
	known   map[string]bool
	order   []string
	loses   func() bool // whether to lose the next answer
	batches int
}

func (s *store) send(_ context.Context, batch []*entry) (outcome, error) {
	time.Sleep(time.Millisecond)
	return s.keep(batch)
}

func (s *store) keep(batch []*entry) (outcome, error) {
	s.batches++
	if len(batch) > s.most {
		return tooMany, errMany
	}
	if slices.ContainsFunc(batch, bad) {
		return refused, errBad
	}
	bytes := 0
	for _, e := range batch {
		bytes += size(e.msg)
		if s.known[e.id] {
			return repeated, nil
		}
	}
	if len(s.order)+len(batch) > s.room {
		return full, errFull
	}
	if bytes > s.bytes {
		return tight, errFull
	}
	s.bytes -= bytes
	for _, e := range batch {
		s.known[e.id] = true
		s.order = append(s.order, e.id)
	}
	if s.loses() {
		return uncertain, errAway
	}
	return stored, nil
}

// bad reports whether the engine refuses an entry by itself.
func bad(e *entry) bool { return strings.HasSuffix(e.id, "7") }

func message(id string) *nats.Msg { return &nats.Msg{Header: nats.Header{headerMsgID: {id}}} }

// TestCommitsDecideLikeOneByOne compares group commit with an engine that gets one entry after the
// other.
func TestCommitsDecideLikeOneByOne(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			lossy, losses := seed%3 == 0, rand.New(rand.NewPCG(seed, 8)) // used by the committer's goroutine
			s := &store{room: random.IntN(60), bytes: math.MaxInt, most: mostInBatch, known: map[string]bool{}, loses: func() bool { return lossy && losses.IntN(4) == 0 }}
			if seed%2 == 0 {
				s.most = 1 + random.IntN(20)
			}
			if seed%5 == 0 {
				s.room, s.bytes = mostInBatch, random.IntN(10_000)
			}
			c := &committer{send: s.send, rest: func(context.Context) bool { time.Sleep(time.Millisecond); return true }}
			room, bytes := s.room, s.bytes
			var entries []*entry
			for range random.IntN(80) {
				msg := message(fmt.Sprint(random.IntN(60)))
				msg.Data = make([]byte, random.IntN(500))
				e := newEntry(msg, time.Now().Add(time.Hour))
				entries = append(entries, e)
				c.put(e)
				time.Sleep(time.Duration(random.IntN(3)) * 300 * time.Microsecond)
			}
			known := map[string]bool{}
			var order []string
			for i, e := range entries {
				err := c.wait(t.Context(), e)
				var want error
				switch {
				case bad(e):
					want = errBad
				case known[e.id]:
				case room == 0 || size(e.msg) > bytes:
					want = errFull
				default:
					known[e.id], room, bytes = true, room-1, bytes-size(e.msg)
					order = append(order, e.id)
				}
				// A lost answer makes a new entry look like a duplicate.
				if !errors.Is(err, want) {
					t.Fatalf("seed %d: entry %d (%s) got %v, want %v", seed, i, e.id, err, want)
				}
				if fresh := len(order) > 0 && order[len(order)-1] == e.id && !e.duplicate; !lossy && want == nil && e.duplicate == fresh {
					t.Fatalf("seed %d: entry %d (%s): duplicate is %t", seed, i, e.id, e.duplicate)
				}
			}
			c.ended.Wait()
			if fmt.Sprint(order) != fmt.Sprint(s.order) {
				t.Fatalf("seed %d: stored %v, want %v", seed, s.order, order)
			}
		})
	}
}

func TestWhoComesDuringACommitIsInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{room: 1000, bytes: math.MaxInt, most: mostInBatch, known: map[string]bool{}, loses: func() bool { return false }}
		c := &committer{send: s.send}
		for i := range 100 {
			c.put(newEntry(message(fmt.Sprint("job ", i, "-")), time.Now().Add(time.Hour)))
			if i == 0 {
				synctest.Wait() // the first commit is under way
			}
		}
		c.ended.Wait()
		if s.batches != 2 || len(s.order) != 100 {
			t.Errorf("%d entries in %d commits", len(s.order), s.batches)
		}
	})
}

// Callers commit their own entries, up to a bound. The others share a batch when these are done.
func TestCallersCommitTheirOwnEntriesUpToABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, others = 3, fewAlone + 1
		release, batches := make(chan struct{}), make(chan int, bound+others)
		c := &committer{alone: bound, send: func(_ context.Context, batch []*entry) (outcome, error) {
			batches <- len(batch)
			<-release
			return stored, nil
		}}
		for i := range bound + others {
			go func() {
				if err := c.store(t.Context(), newEntry(message(fmt.Sprint(i)), time.Now().Add(time.Hour))); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if len(batches) != bound {
			t.Errorf("%d commit at once, want %d", len(batches), bound)
		}
		close(release)
		synctest.Wait()
		close(batches)
		var sizes []int
		for n := range batches {
			sizes = append(sizes, n)
		}
		if want := []int{1, 1, 1, others}; !slices.Equal(sizes, want) {
			t.Errorf("batches of %v, want %v", sizes, want)
		}
	})
}

// TestCommitsOfCallersAndBatchesDecideEachEntryOnce has callers in any order, some of which leave.
func TestCommitsOfCallersAndBatchesDecideEachEntryOnce(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			engine := &store{room: math.MaxInt, bytes: math.MaxInt, most: mostInBatch, known: map[string]bool{}, loses: func() bool { return false }}
			var mu sync.Mutex
			var alone, together int
			bound := 1 + random.IntN(10)
			c := &committer{alone: bound, rest: func(ctx context.Context) bool { time.Sleep(time.Millisecond); return ctx.Err() == nil },
				send: func(ctx context.Context, batch []*entry) (outcome, error) {
					mu.Lock()
					if alone++; alone > bound || len(batch) > 1 && alone > 1 {
						together++
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					alone--
					if ctx.Err() != nil {
						return uncertain, ctx.Err()
					}
					return engine.keep(batch)
				}}
			fresh, gone := map[string]int{}, map[string]bool{}
			var all sync.WaitGroup
			for range random.IntN(80) {
				id := fmt.Sprint(random.IntN(60))
				arrives, leaves := time.Duration(random.IntN(20))*time.Millisecond/3, time.Duration(random.IntN(40))*time.Millisecond
				all.Go(func() {
					time.Sleep(arrives)
					ctx, cancel := context.WithTimeout(t.Context(), leaves)
					defer cancel()
					e := newEntry(message(id), time.Now().Add(time.Hour))
					err := c.store(ctx, e)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, context.DeadlineExceeded):
						gone[id] = true
					case bad(e) != errors.Is(err, errBad) || !bad(e) && err != nil:
						t.Errorf("seed %d: entry %s: %v", seed, id, err)
					case err == nil && !e.duplicate:
						fresh[id]++
					}
				})
			}
			all.Wait()
			c.end()
			if together > 0 {
				t.Errorf("seed %d: %d commits beside too many others", seed, together)
			}
			for _, id := range engine.order {
				if fresh[id] != 1 && !gone[id] {
					t.Errorf("seed %d: entry %s was stored, and %d callers heard it", seed, id, fresh[id])
				}
			}
			for id, n := range fresh {
				if n != 1 || !slices.Contains(engine.order, id) {
					t.Errorf("seed %d: %d callers heard that entry %s is stored", seed, n, id)
				}
			}
			if err := c.store(t.Context(), newEntry(message("late"), time.Now().Add(time.Hour))); !errors.Is(err, errClosed) {
				t.Errorf("seed %d: after the end: %v", seed, err)
			}
		})
	}
}

// Concurrent jobs shared batches also where the server does not fsync: 64 callers stored 1,361 jobs a
// second, and 8 callers 11,395.
func TestWithoutAnFsyncNothingIsShared(t *testing.T) {
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir(), NoSync: true})
	check(t, err)
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	q := open(t, Config{Server: server})
	const jobs = 100
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() { enqueue(t, q, jobqueue.Job{Key: fmt.Sprint(i % (jobs / 2))}) })
	}
	all.Wait()
	if s := stats(t, q); s.Enqueued != jobs/2 || s.Duplicates != jobs/2 {
		t.Errorf("%+v", s)
	}
	first := q.jobs.CachedInfo().State.LastSeq + 1
	for i := range uint64(jobs / 2) {
		msg, err := q.jobs.GetMsg(within(t), first+i)
		check(t, err)
		if id := msg.Header.Get(headerBatch); id != "" {
			t.Fatalf("job %d is of batch %s", i, id)
		}
	}
}

func TestEntriesFailWhenTheEngineStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := func(context.Context, []*entry) (outcome, error) { return uncertain, errAway }
		c := &committer{send: away, rest: func(context.Context) bool { time.Sleep(time.Second); return true }}
		began := time.Now()
		e := newEntry(message("a"), began.Add(5*time.Second))
		c.put(e)
		if err := c.wait(t.Context(), e); !errors.Is(err, errAway) || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestWaitForACommitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var sent int
		c := &committer{send: func(_ context.Context, batch []*entry) (outcome, error) {
			sent += len(batch)
			<-release
			return stored, nil
		}}
		c.put(newEntry(message("under way"), time.Now().Add(time.Hour)))
		synctest.Wait()
		e := newEntry(message("not begun"), time.Now().Add(time.Hour))
		c.put(e)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.wait(ctx, e); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(release)
		c.ended.Wait()
		if sent != 1 {
			t.Errorf("%d sent: what no commit had begun with was not taken back", sent)
		}
	})
}
