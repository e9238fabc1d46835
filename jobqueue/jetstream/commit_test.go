package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

var errFull, errAway = errors.New("full"), errors.New("away")

// store is a slow, simple model of an engine. It stores a whole batch or nothing, and may lose its
// answer.
type store struct {
	room    int
	known   map[string]bool
	order   []string
	loses   func() bool // whether to lose the next answer
	batches int
}

func (s *store) send(batch []*entry) (outcome, error) {
	time.Sleep(time.Millisecond)
	s.batches++
	for _, e := range batch {
		if s.known[e.id] {
			return repeated, nil
		}
	}
	if len(s.order)+len(batch) > s.room {
		return full, errFull
	}
	for _, e := range batch {
		s.known[e.id] = true
		s.order = append(s.order, e.id)
	}
	if s.loses() {
		return uncertain, errAway
	}
	return stored, nil
}

func message(id string) *nats.Msg { return &nats.Msg{Header: nats.Header{headerMsgID: {id}}} }

// TestCommitsDecideLikeOneByOne compares group commit with an engine that gets one entry after the
// other.
func TestCommitsDecideLikeOneByOne(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			lossy, losses := seed%3 == 0, rand.New(rand.NewPCG(seed, 8)) // used by the committer's goroutine
			s := &store{room: random.IntN(60), known: map[string]bool{}, loses: func() bool { return lossy && losses.IntN(4) == 0 }}
			c := &committer{send: s.send, rest: func() bool { time.Sleep(time.Millisecond); return true }}
			var entries []*entry
			for range random.IntN(80) {
				e := newEntry(message(fmt.Sprint(random.IntN(60))), time.Now().Add(time.Hour))
				entries = append(entries, e)
				c.put(e)
				time.Sleep(time.Duration(random.IntN(3)) * 300 * time.Microsecond)
			}
			known, room := map[string]bool{}, s.room
			var order []string
			for i, e := range entries {
				err := c.wait(t.Context(), e)
				var want error
				switch {
				case known[e.id]:
				case room == 0:
					want = errFull
				default:
					known[e.id], room = true, room-1
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
		s := &store{room: 1000, known: map[string]bool{}, loses: func() bool { return false }}
		c := &committer{send: s.send}
		for i := range 100 {
			c.put(newEntry(message(fmt.Sprint(i)), time.Now().Add(time.Hour)))
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

func TestEntriesFailWhenTheEngineStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := func([]*entry) (outcome, error) { return uncertain, errAway }
		c := &committer{send: away, rest: func() bool { time.Sleep(time.Second); return true }}
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
		c := &committer{send: func(batch []*entry) (outcome, error) { sent += len(batch); <-release; return stored, nil }}
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
