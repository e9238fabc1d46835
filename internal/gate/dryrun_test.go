package gate

import (
	"math"
	"math/rand/v2"
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
	if r := force(g, 1, false, Never); r != spillway.QueueFull {
		t.Errorf("both slots are in use, and a dry run says %v", r)
	}
	const took = 100 * time.Millisecond
	g, now, _ := fill(t, took)
	if r := force(g, now, true, now+took/2); r != spillway.DeadlineTooClose {
		t.Errorf("half a service time is left, and a dry run says %v", r)
	}
}

func TestADryRunIsUnderThePressureOfSignals(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(4)})
	g.SetBounds(Bounds{Cap: 2, Pressed: spillway.Signal})
	for i, want := range []spillway.Reason{0, 0, spillway.Signal} {
		if r := force(g, 0, false, Never); r != want {
			t.Errorf("arrival %d: %v, want %v", i, r, want)
		}
	}
}

// A dry run refuses queued work once its caller would have left, or after MaxWait. The memory
// for such refusals is bounded, even if the owner never fetches them.
func TestADryRunRefusesWhatWouldHaveWaitedForNothing(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), QueueSize: 10, MaxWait: time.Second})
	force(g, 0, true, Never) // takes the slot
	force(g, 0, true, 100*time.Millisecond)
	force(g, 0, true, Never)
	for _, c := range []struct {
		at   time.Duration
		want []LateRefusal
	}{
		{50 * time.Millisecond, nil},
		{150 * time.Millisecond, []LateRefusal{{spillway.Normal, spillway.DeadlineTooClose}}},
		{1100 * time.Millisecond, []LateRefusal{{spillway.Normal, spillway.WaitTooLong}}},
	} {
		g.Force(c.at, Arrival{Cost: 1, Deadline: Never, Priority: spillway.High}, false, 0)
		if late := g.LateRefusals(); !slices.Equal(late, c.want) {
			t.Errorf("at %v: %v, want %v", c.at, late, c.want)
		}
	}
	before := g.Counts()
	now := 2 * time.Second
	for range 2 * mostLateRefusals {
		force(g, now, true, now+1)
		now += time.Second
	}
	after := g.Counts()
	if n, late := after.WouldReject()-before.WouldReject(), len(g.LateRefusals()); n < 2*mostLateRefusals-1 || late != mostLateRefusals {
		t.Errorf("%d were counted and %d kept, at most %d may be", n, late, mostLateRefusals)
	}
}

// Regression: nothing bounded the waiters of a dry run without a MaxWait.
func TestWaitersOfADryRunAreBounded(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), QueueSize: math.MaxInt, MaxWait: Never})
	for i := range mostShadowWaiters + 1000 {
		if r := force(g, time.Duration(i), true, Never); r != 0 {
			t.Fatalf("arrival %d waits: %v", i, r)
		}
	}
	if n := g.shadow.gate.queued; n != mostShadowWaiters {
		t.Errorf("%d wait", n)
	}
	if r := force(g, time.Hour, false, Never); r != spillway.QueueFull {
		t.Errorf("work that must not wait: %v", r)
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

func TestWorkOfADryRunEndsInOrder(t *testing.T) {
	var h ends
	r := rand.New(rand.NewPCG(1, 1))
	var want, got []time.Duration
	for range 200 {
		at := time.Duration(r.IntN(100))
		h.push(shadowEnd{at: at})
		want = append(want, at)
	}
	for len(h) > 0 {
		got = append(got, h.pop().at)
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%v", got)
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
		g.End(c.at, Grant{Seq: g.Seq(), Start: start, Deadline: c.deadline, Cost: 1}, limit.Canceled)
		if !slices.Equal(law.told, []limit.Outcome{c.want}) {
			t.Errorf("left at %v with the deadline %v: the law was told %v", c.at, c.deadline, law.told)
		}
	}
}

// A caller that is refused for its share is no sign of a lack of capacity.
func TestRefusalsForAShareDoNotUseUpWhatMayBeRefused(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), MaxRefused: 0.3})
	now := time.Duration(0)
	g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
	for range 2000 {
		now += 5 * time.Millisecond
		if d := g.Arrive(now, Arrival{Cost: 1, Deadline: Never, Traits: OverShare}, nil); d.Reason != spillway.Quota {
			t.Fatalf("%+v", d)
		}
	}
	if d := g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil); d.Action != Reject {
		t.Errorf("let in over the limit: %+v", d)
	}
}
