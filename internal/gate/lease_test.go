package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// While the law, a slow start or a signal held the limit below a lease, MaxRefused once admitted
// two thousand pieces of work over a lease of ten.
func TestALeaseIsNotExceededForMaxRefused(t *testing.T) {
	for _, b := range []Bounds{{}, {High: 5}, {Share: 0.5}, {Cap: 4, Pressed: spillway.ReasonMemory}} {
		for _, law := range []int{8, 20} {
			b.Leased = 10
			g := New(Config{Law: limit.NewFixed(law), MaxRefused: 0.05, MaxWait: time.Second})
			g.SetBounds(b)
			for i := range 2000 {
				g.Arrive(time.Duration(i)*time.Millisecond, Arrival{Cost: 1, Deadline: Never}, nil)
				if g.InFlight() > 10 {
					t.Fatalf("%+v, law %d: %d in flight under a lease of 10", b, law, g.InFlight())
				}
			}
		}
	}
}

// draining is a gate of 100 slots in use whose limit then falls to ten, by its law or a lease. 40
// pieces of critical work wait.
func draining(leased bool) (g *Gate, runs []Grant) {
	law := &dial{n: 100}
	g = New(Config{Law: law, QueueSize: 1000, MaxWait: 10 * time.Second})
	for range 100 {
		g.Arrive(0, Arrival{Cost: 1, Deadline: Never, Priority: spillway.Low}, nil)
		runs = append(runs, g.Started())
	}
	if leased {
		g.SetBounds(Bounds{Leased: 10})
	} else {
		law.n = 10
	}
	for range 40 {
		g.Arrive(time.Millisecond, Arrival{Cost: 1, Deadline: Never, Priority: spillway.Critical}, &Waiter{})
	}
	return g, runs
}

// After a law had fallen below the slots in use, slow work once held all slots for seconds. Critical
// work that has waited takes every second slot that is given back, but none under a lease.
func TestCriticalWorkOvertakesADrainAndNoLease(t *testing.T) {
	for leased, want := range map[bool][2]int{false: {20, 25}, true: {0, 0}} {
		g, runs := draining(leased)
		started := 0
		for i, w := range runs[:50] {
			now := time.Second + time.Duration(i)*time.Millisecond
			g.End(now, w, limit.Success)
			if w, granted := g.Next(now); granted {
				g.Taken(w, 0)
				started++
			}
		}
		if started < want[0] || started > want[1] {
			t.Errorf("leased %v: of fifty slots that were given back critical work has taken %d", leased, started)
		}
	}
}

// Critical work that has overtaken a drain passes its slot on to the next critical work. Calls
// of 5 ms once got one start for every two ends of work that takes seconds.
func TestTheSlotOfWorkThatHasOvertakenIsPassedOn(t *testing.T) {
	g, long := draining(false)
	now := time.Second
	for _, w := range long[:3] { // the law is asked after the first
		g.End(now, w, limit.Success)
	}
	started := 0
	for {
		w, granted := g.Next(now)
		if !granted {
			break
		}
		g.Taken(w, 0)
		started++
		if _, second := g.Next(now); second {
			t.Fatal("two run in the slots of three, and the limit is never reached")
		}
		now += 5 * time.Millisecond
		g.End(now, g.Started(), limit.Success)
	}
	if started != 40 {
		t.Errorf("%d of 40 that waited were started", started)
	}
}

// In an overload of normal work, a little critical work was once refused for a wait of
// 0.3 s, although it had two seconds: a queue of critical work drains.
func TestOnlyDemandOfItsLevelAndAboveBoundsAWait(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(4), QueueSize: 1000, MaxWait: 10 * time.Second})
	g.overdemand = overdemandMost
	g.service.enter(1e8, 1e8/4, 1, true)
	now := time.Duration(0)
	for i := range 2000 { // work for forty slots; one piece in forty is critical
		now += 2500 * time.Microsecond
		p := spillway.Normal
		if i%40 == 0 {
			p = spillway.Critical
		}
		g.roll(now)
		g.demand.arrive(priority.Level(p), 1, 1)
	}
	if got, most := g.bound(priority.Level(spillway.Critical), 2*time.Second), g.longestWait(2*time.Second); got < most/2 {
		t.Errorf("critical work may wait %v of %v", time.Duration(got), time.Duration(most))
	}
	if got := g.bound(priority.Level(spillway.Normal), 2*time.Second); got > 0.5e9 {
		t.Errorf("normal work may wait %v", time.Duration(got))
	}
}

// dial is a law whose limit changes by itself.
type dial struct{ n int }

func (d *dial) Limit() int                       { return d.n }
func (d *dial) Admit(time.Duration, limit.Load)  {}
func (d *dial) Observe(limit.Sample, limit.Load) {}

// The limit of a law was once read only after a start or an end. With its one slot hung, a gate
// never saw a new limit.
func TestBoundsSeeALimitThatChangedByItself(t *testing.T) {
	law := &dial{n: 1}
	g := New(Config{Law: law})
	g.Arrive(0, Arrival{Cost: 1, Deadline: Never}, nil)
	law.n = 100
	g.SetBounds(Bounds{})
	if g.Limit() != 100 {
		t.Errorf("the limit is %d, the law says 100", g.Limit())
	}
}
