package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// busyWith is a gate of one slot with evidence about work that takes took and has the given time
// until its deadline. Its slot has just been taken.
func busyWith(elapsed, deadline time.Duration) (g *Gate, now time.Duration, running Grant) {
	g = New(Config{Law: limit.NewFixed(1), QueueSize: 100, MaxWait: time.Hour})
	for range 200 {
		g.Arrive(now, Arrival{Cost: 1, Deadline: now + deadline}, nil)
		running = g.Started()
		now += elapsed
		g.End(now, running, limit.Success)
		now += 2 * elapsed
	}
	g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
	return g, now, g.Started()
}

func TestAFreeSlotIsGiven(t *testing.T) {
	const took = 100 * time.Millisecond
	g, now, running := busyWith(took, time.Second)
	g.End(now+took, running, limit.Success)
	now += took
	if d := g.Arrive(now, Arrival{Cost: 1, Deadline: now + 1}, nil); d.Action != Admit {
		t.Errorf("a slot is free, and work that has a nanosecond is answered %+v", d)
	}
	if d := g.Arrive(now, Arrival{Cost: 1, Deadline: now}, nil); d.Action != Reject || d.Reason != spillway.ReasonDeadlineTooClose {
		t.Errorf("work whose deadline has passed is answered %+v", d)
	}
}

// The times of reports once counted for lookups, although the deadlines of reports are longer: lookups
// were refused for hours.
func TestEvidenceIsAboutItsOwnKindAndRecent(t *testing.T) {
	const took = time.Second
	g, now, running := busyWith(took, 8*time.Second)
	g.End(now+took, running, limit.Success)
	now += took
	need := func(now, deadline time.Duration) time.Duration {
		kind := g.kind(Key(0, &Arrival{Deadline: deadline}), 1)
		return time.Duration(g.need(now, kind, now+deadline))
	}
	if got := need(now, 8*time.Second); got < took/2 || got > 2*took {
		t.Errorf("work of the kind is thought to need %v, and takes %v", got, took)
	}
	if got := need(now, 500*time.Millisecond); got != 0 {
		t.Errorf("of work of another kind nothing is known, and it is thought to need %v", got)
	}
	if got := need(now+time.Hour, 8*time.Second); got != 0 {
		t.Errorf("after an hour work is thought to need %v", got)
	}
}

// Probes are a small part of the arrivals, and of the capacity: a service is not stopped by probes of a
// crowd.
func TestWhatEvidenceSpeaksAgainstMayTryNowAndThen(t *testing.T) {
	g, now, _ := busyWith(time.Second, 2*time.Second)
	tries := func(n int) (waited int) {
		for range n { // the wait and the work take a second each, but the deadline leaves 1.45 s
			w := &Waiter{}
			if d := g.Arrive(now, Arrival{Cost: 1, Deadline: now + 1450*time.Millisecond}, w); d.Action == Wait {
				waited++
				g.Leave(now, w)
			}
		}
		return waited
	}
	if n := tries(100 * probeEvery); n != 1 {
		t.Errorf("of a crowd %d may try, want 1", n)
	}
	k, part := kinds{list: make([]kind, 2)}, 1e9
	for at, want := range []int{1, 0, 1, 0, 1} {
		n := 0
		for range 10 * probeEvery {
			if k.probe(time.Duration(at+2)*probeEvery*time.Second, 1, part) {
				n++
			}
		}
		if n != want {
			t.Errorf("after the time of %d pieces of work %d may try, want %d", at*probeEvery, n, want)
		}
	}
}
