package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// While the law, a slow start or a signal held the limit below a lease, MaxRefused let in
// two thousand over a lease of ten.
func TestALeaseIsNotExceededForMaxRefused(t *testing.T) {
	for _, b := range []Bounds{{}, {High: 5}, {Part: 0.5}, {Cap: 4, Pressed: spillway.Memory}} {
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

// A minute without a lease counted as refusals beyond MaxRefused: once the lease was back,
// everything was let in for half a minute.
func TestRefusalsForALeaseDoNotOpenTheGateLater(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(2), MaxRefused: 0.05, MaxWait: time.Second})
	now := time.Duration(0)
	for range 1000 {
		now += 10 * time.Millisecond
		g.Refused(now, spillway.Normal, spillway.Budget)
	}
	for range 2 {
		g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
	}
	if d := g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil); d.Verdict != Reject {
		t.Errorf("a third of two was let in: %+v", d)
	}
}

func TestCriticalWorkDoesNotOvertakeALease(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(100), QueueSize: 1000, MaxWait: 10 * time.Second})
	a := Arrival{Cost: 1, Deadline: Never, Priority: spillway.Critical}
	var runs []Grant
	for range 100 {
		g.Arrive(0, a, nil)
		runs = append(runs, g.Started())
	}
	g.SetBounds(Bounds{Leased: 10})
	for range 40 {
		g.Arrive(time.Millisecond, a, &Waiter{})
	}
	for i, w := range runs[:50] {
		now := time.Second + time.Duration(i)*time.Millisecond
		g.End(now, w, limit.Success)
		if w, granted := g.Next(now); granted {
			t.Fatalf("%+v was started while %d ran under a lease of 10", w, g.InFlight())
		}
	}
}

// Where a law has fallen below what runs, long work held all slots for seconds: critical
// work that has waited takes every second slot that is given back.
func TestCriticalWorkOvertakesADrain(t *testing.T) {
	law := &dial{n: 100}
	g := New(Config{Law: law, QueueSize: 1000, MaxWait: 10 * time.Second})
	var runs []Grant
	for range 100 {
		g.Arrive(0, Arrival{Cost: 1, Deadline: Never, Priority: spillway.Low}, nil)
		runs = append(runs, g.Started())
	}
	law.n = 10
	for range 40 {
		g.Arrive(time.Millisecond, Arrival{Cost: 1, Deadline: Never, Priority: spillway.Critical}, &Waiter{})
	}
	started := 0
	for i, w := range runs[:50] {
		now := time.Second + time.Duration(i)*time.Millisecond
		g.End(now, w, limit.Success)
		if w, granted := g.Next(now); granted {
			g.Taken(w, 0)
			started++
		}
	}
	if started < 20 || started > 25 {
		t.Errorf("of fifty slots that were given back critical work has taken %d", started)
	}
}

// dial is a law whose limit changes by itself.
type dial struct{ n int }

func (d *dial) Limit() int                       { return d.n }
func (d *dial) Admit(time.Duration, limit.Load)  {}
func (d *dial) Observe(limit.Sample, limit.Load) {}

// The limit of a law was asked only after a start or an end: with the one slot hung, a new
// limit was never seen.
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
