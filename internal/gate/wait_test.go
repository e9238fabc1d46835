package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// crowd drives a gate of ten slots with work of 50 ms that has a second each, so
// many a second for so long, and returns the longest wait of who was admitted.
type crowd struct {
	g       *Gate
	now     time.Duration
	running []Grant // in the order of their ends
}

func newCrowd() *crowd {
	return &crowd{g: New(Config{Law: limit.NewFixed(10), QueueSize: 1 << 20, MaxWait: 10 * time.Second})}
}

func (c *crowd) offer(perSecond int, d time.Duration) (longest time.Duration) {
	const took = 50 * time.Millisecond
	for end, step := c.now+d, time.Second/time.Duration(perSecond); c.now < end; c.now += step {
		for len(c.running) > 0 && c.running[0].Start+took <= c.now {
			done := c.running[0]
			c.running = c.running[1:]
			at := done.Start + took
			c.g.End(at, done, limit.Success)
			for {
				w, ok := c.g.Next(at)
				if w == nil {
					break
				}
				if ok {
					c.g.Taken(at - w.Since())
					longest = max(longest, at-w.Since())
					c.running = append(c.running, Grant{Seq: c.g.Seq(), Start: at, Cost: 1})
				}
			}
		}
		if d := c.g.Arrive(c.now, Arrival{Cost: 1, Deadline: c.now + time.Second}, &Waiter{}); d.Verdict == Admit {
			c.running = append(c.running, Grant{Seq: c.g.Seq(), Start: c.now, Cost: 1})
		}
	}
	return longest
}

// The capacity is 200 a second.
func TestABurstMayUseItsDeadlineAndAStandingQueueMayNot(t *testing.T) {
	c := newCrowd()
	c.offer(60, 10*time.Second)
	if got := c.offer(400, 3*time.Second); got < 800*time.Millisecond {
		t.Errorf("in a burst of three seconds nobody waited longer than %v, although all had a second", got)
	}
	c.offer(60, 5*time.Second)
	if got := c.offer(400, 3*time.Second); got < 800*time.Millisecond {
		t.Errorf("the next burst waited no longer than %v", got)
	}
	c.offer(400, 3*time.Second)
	if got := c.offer(400, 10*time.Second); got > 100*time.Millisecond {
		t.Errorf("the queue makes people wait %v for a service time of 50ms, and never drains", got)
	}
}

func TestAFreshGateDoesNotTakeOverloadForABurst(t *testing.T) {
	c := newCrowd()
	c.offer(400, 2*time.Second)
	if got := c.offer(400, 2*time.Second); got > 100*time.Millisecond {
		t.Errorf("two seconds after the start the queue makes people wait %v", got)
	}
}

// Four times a deadline that is nearly never once overflowed.
func TestWhoHasAllTheTimeMayWaitInABurst(t *testing.T) {
	g, now, _ := fill(t, 50*time.Millisecond)
	g.stood, g.demand.slow[level(spillway.Normal)] = longPatience/2, 1e6
	for range 100 {
		if d := g.Arrive(now, Arrival{Cost: 1, Deadline: Never - 1}, &Waiter{}); d.Verdict != Wait {
			t.Fatalf("%+v", d)
		}
	}
}
