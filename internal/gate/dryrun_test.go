package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func force(g *Gate, now time.Duration, mayWait bool, deadline time.Duration) spillway.Reason {
	return g.Force(now, Arrival{Cost: 1, Deadline: deadline}, mayWait, 0).Reason
}

// Work that runs when a dry run begins takes slots in the dry run. Earlier evidence
// decides from its first arrival on.
func TestADryRunBeginsWithWhatRunsAndIsKnown(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(2)})
	for range 2 {
		g.Arrive(0, Arrival{Cost: 1, Deadline: Never}, nil)
	}
	if r := force(g, 1, false, Never); r != spillway.ReasonQueueFull {
		t.Errorf("both slots are in use, and a dry run says %v", r)
	}
	const took = 100 * time.Millisecond
	g, now, _ := fill(t, took)
	if r := force(g, now, true, now+took/2); r != spillway.ReasonDeadlineTooClose {
		t.Errorf("half a service time is left, and a dry run says %v", r)
	}
}

// A full queue of a dry run refuses the least important work, and its size bounds what would wait.
func TestAFullQueueOfADryRunRefusesTheLeastImportant(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), QueueSize: 2, MaxWait: Never})
	for i, c := range []struct {
		priority spillway.Priority
		want     spillway.Reason
	}{
		{spillway.Low, 0}, // takes the slot
		{spillway.Low, 0}, {spillway.Normal, 0},
		{spillway.Low, spillway.ReasonQueueFull},
		{spillway.Normal, 0}, // in place of a low one
		{spillway.Normal, spillway.ReasonQueueFull}, {spillway.Low, spillway.ReasonQueueFull},
		{spillway.High, 0}, // in place of a normal or a low one
	} {
		if d := g.Force(0, Arrival{Cost: 1, Deadline: Never, Priority: c.priority}, true, 0); d.Reason != c.want || d.Action != Admit {
			t.Errorf("arrival %d: %+v, want %v", i, d, c.want)
		}
	}
	if g.Queued() > 0 {
		t.Error("a dry run made work wait")
	}
}

// What would wait is served as time passes, and then slots become free.
func TestTheQueueOfADryRunDrains(t *testing.T) {
	const took = 100 * time.Millisecond
	g, now, _ := fill(t, took) // one slot, in use
	for range 3 {
		force(g, now, true, Never)
	}
	for _, c := range []struct {
		after time.Duration
		want  spillway.Reason
	}{{2 * took, spillway.ReasonQueueFull}, {5 * took, 0}, {5 * took, spillway.ReasonQueueFull}} {
		if r := force(g, now+c.after, false, Never); r != c.want {
			t.Errorf("after %v: %v, want %v", c.after, r, c.want)
		}
	}
}

// Advice is for callers that would have been refused: it counts the work that would be ahead.
func TestAdviceOfADryRunIsOfItsOwnQueue(t *testing.T) {
	g, now, _ := fill(t, 100*time.Millisecond)
	calm := g.WouldRetryAfter(spillway.Normal)
	for range 9 {
		force(g, now, true, Never)
	}
	if g.Queued() > 0 {
		t.Fatal("a dry run made work wait")
	}
	if busy := g.WouldRetryAfter(spillway.Normal); busy < calm+500*time.Millisecond {
		t.Errorf("nine would be ahead for 100 ms each, and the advice is %v; before it was %v", busy, calm)
	}
}

type outcomes struct {
	limit.Law
	told []limit.Outcome
}

func (l *outcomes) Observe(s limit.Sample, _ limit.Load) { l.told = append(l.told, s.Outcome) }

// Over a network a caller leaves a little before the deadline of its request.
func TestACallerThatLeavesJustBeforeItsDeadlineLeavesForIt(t *testing.T) {
	const start = 10 * time.Second
	for _, c := range []struct {
		deadline, at time.Duration
		want         limit.Outcome
	}{
		{start + time.Second, start + 900*time.Millisecond, limit.Canceled},
		{start + time.Second, start + 960*time.Millisecond, limit.Deadline},
		{start + time.Second, start + 1100*time.Millisecond, limit.Deadline},
		{Never, start + time.Hour, limit.Canceled},
		{start, start + time.Second, limit.Canceled}, // a dry run starts work with no time left
	} {
		law := &outcomes{Law: limit.NewFixed(1)}
		g := New(Config{Law: law})
		g.Arrive(start, Arrival{Cost: 1, Deadline: Never}, nil)
		g.End(c.at, Grant{Seq: g.seq, Start: start, Deadline: c.deadline, Cost: 1}, limit.Canceled)
		if !slices.Equal(law.told, []limit.Outcome{c.want}) {
			t.Errorf("left at %v with the deadline %v: the law was told %v", c.at, c.deadline, law.told)
		}
	}
}

// A limit would prevent a standing queue in the backend: work that would have
// been refused must not keep other work from being admitted.
func TestADryRunLeavesOutWhatItWouldHaveRefused(t *testing.T) {
	const took, limited = 100 * time.Millisecond, 10
	g := New(Config{Law: limit.NewFixed(limited), MaxWait: time.Second})
	now := time.Duration(0)
	var running []Grant
	for range 4000 { // twice the capacity of ten slots; work takes ever longer
		now += took / limited / 2
		for len(running) > 0 && running[0].Start+took <= now && len(running)%2 == 0 {
			g.End(now, running[0], limit.Success)
			running = running[1:]
		}
		g.Force(now, Arrival{Cost: 1, Deadline: Never}, false, 0)
		running = append(running, Grant{Seq: g.seq, Start: now, Cost: 1})
	}
	c := g.Counts()
	if share := float64(c.WouldReject()) / float64(c.Offered); share < 0.45 || share > 0.55 {
		t.Errorf("half of it is too much, %.2f would be refused", share)
	}
}

func TestADryRunEndsWithEnforcement(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1)})
	g.Force(0, Arrival{Cost: 1, Deadline: Never}, false, 0)
	g.End(1, Grant{Seq: g.seq, Cost: 1}, limit.Success)
	if g.dry == nil {
		t.Fatal("no dry run")
	}
	g.Arrive(2, Arrival{Cost: 1, Deadline: Never}, nil)
	g.End(3, Grant{Seq: g.seq, Start: 2, Cost: 1}, limit.Success)
	if g.dry != nil {
		t.Error("it stays")
	}
}

// Work that costs more than the limit runs alone for one service time. In the books such work once took
// its cost over the limit in service times to drain, and everything that came after it was refused.
func TestAnExpensiveRequestDoesNotStopADryRun(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(10), QueueSize: 1000, MaxWait: 10 * time.Second})
	const took = 10 * time.Millisecond
	force := func(now time.Duration, cost int) Grant {
		g.Force(now, Arrival{Cost: cost, Deadline: Never}, true, 0)
		return g.Started()
	}
	first, expensive := force(0, 1), force(0, 1<<30) // while nothing is known of service times
	g.End(took, first, limit.Success)
	g.End(2*took, expensive, limit.Success)
	for i := range time.Duration(6000) { // a tenth of the capacity
		g.End((i+4)*took, force((i+3)*took, 1), limit.Success)
	}
	if c := g.Counts(); c.WouldReject() > 1 {
		t.Errorf("one at a time, and %d of %d would be refused", c.WouldReject(), c.Offered)
	}
}

// A queue counts callers, whatever they cost.
func TestTheQueueOfADryRunCountsCallers(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(10), QueueSize: 100, MaxWait: Never})
	for range 60 {
		if d := g.Force(0, Arrival{Cost: 5, Deadline: Never}, true, 0); d.Reason != 0 {
			t.Fatalf("a queue of 100 has no place for 60 callers: %v", d.Reason)
		}
	}
}

// Long work waits for a slot like other work, and holds none. In the books only its callers wait, and they
// do not stay there.
func TestLongWorkDoesNotStayInTheBooksOfADryRun(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), QueueSize: 10, MaxWait: Never})
	force := func(now time.Duration, long Traits) spillway.Reason {
		return g.Force(now, Arrival{Cost: 1, Deadline: Never, Traits: long}, true, 0).Reason
	}
	for i := range 10 { // the service time is a second, and is known
		now := time.Duration(i) * 10 * time.Second
		force(now, 0)
		g.End(now+time.Second, g.Started(), limit.Success)
	}
	now := 100 * time.Second
	force(now, 0)
	for range 10 {
		force(now, Long)
	}
	if force(now, Long) != spillway.ReasonQueueFull {
		t.Error("eleven pieces of long work wait in a queue of ten")
	}
	if why := force(now+time.Minute, Long); why != 0 {
		t.Errorf("a minute later nothing runs, and long work would be refused: %v", why)
	}
}
