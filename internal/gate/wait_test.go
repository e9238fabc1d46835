package gate

import (
	"cmp"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// crowd drives a gate of ten slots with work of 50 ms. offer returns the longest wait of the
// granted work.
type crowd struct {
	g       *Gate
	now     time.Duration
	time    time.Duration // time of a caller
	running []Grant       // in the order of their ends
	takes   time.Duration // service time; 0: 50 ms
}

func newCrowd() *crowd {
	return &crowd{g: New(Config{Law: limit.NewFixed(10), QueueSize: 1 << 20, MaxWait: 10 * time.Second}), time: time.Second}
}

func (c *crowd) offer(perSecond int, d time.Duration) (longest time.Duration) {
	elapsed := cmp.Or(c.takes, 50*time.Millisecond)
	for end, step := c.now+d, time.Second/time.Duration(perSecond); c.now < end; c.now += step {
		for len(c.running) > 0 && c.running[0].Start+elapsed <= c.now {
			done := c.running[0]
			c.running = c.running[1:]
			at := done.Start + elapsed
			c.g.End(at, done, limit.Success)
			for {
				w, ok := c.g.Next(at)
				if w == nil {
					break
				}
				if ok {
					c.g.Taken(w, at-w.Since())
					longest = max(longest, at-w.Since())
					c.running = append(c.running, Grant{Seq: c.g.seq, Start: at, Cost: 1})
				}
			}
		}
		deadline := Never
		if c.time < Never {
			deadline = c.now + c.time
		}
		if d := c.g.Arrive(c.now, Arrival{Cost: 1, Deadline: deadline}, &Waiter{}); d.Action == Admit {
			c.running = append(c.running, Grant{Seq: c.g.seq, Start: c.now, Cost: 1})
		}
	}
	return longest
}

// One slot is half in use by calls of two seconds that come in pairs, as may happen by chance.
// While rates covered 1.5 s, a pair counted as three times the capacity. So did a pair of calls of
// eight slots each.
func TestTwoLongCallsAtOnceAreNoOverload(t *testing.T) {
	for _, cost := range []int{1, 8} {
		g := New(Config{Law: limit.NewFixed(cost), QueueSize: 100, MaxWait: 10 * time.Second})
		asked := 0.0
		const pairs, ticks = 30, 80 // of 100 ms, from one pair to the next
		for tick := range pairs * ticks {
			now := time.Duration(tick) * 100 * time.Millisecond
			switch tick % ticks {
			case 0, 2:
				if d := g.Arrive(now, Arrival{Cost: cost, Deadline: now + 10*time.Second}, &Waiter{}); d.Action == Reject {
					t.Errorf("after %v: %v", now, d.Reason)
				}
			case 20, 40:
				g.End(now, g.Started(), limit.Success)
				g.Next(now)
			}
			if g.roll(now); tick > 10*ticks {
				asked = max(asked, g.asked(&g.demand.many, levels-1), g.asked(&g.demand.few, levels-1))
			}
		}
		if asked > 1 || asked < 0.5 {
			t.Errorf("cost %d: half of what can be done comes, and %.2f of that seems to", cost, asked)
		}
	}
}

// The capacity is 200 a second, and the work takes 50 ms. Callers with a second to
// spare used to wait in the queue for a second. Callers without a deadline waited for as
// long as MaxWait, and for four seconds before the first refusal.
func TestABurstMayQueueAndAStandingQueueMayNot(t *testing.T) {
	for _, c := range []struct {
		name   string
		time   time.Duration // time of a caller
		burst  time.Duration // longest wait in a burst
		enough time.Duration // time at three times the capacity until it counts as overload
	}{
		{"with a second", time.Second, 400 * time.Millisecond, 3 * time.Second},
		{"with 200 ms", 200 * time.Millisecond, 150 * time.Millisecond, 3 * time.Second},
		{"without a deadline", Never, 200 * time.Millisecond, 2 * time.Second},
	} {
		for _, most := range []time.Duration{10 * time.Second, 100 * time.Millisecond} { // MaxWait
			k := newCrowd()
			k.g.cfg.MaxWait, k.time = most, c.time
			burst := min(c.burst, most)
			notice := min(150*time.Millisecond, most-burst) // the load has risen, but no rate shows it yet
			k.offer(60, 10*time.Second)
			for range 2 { // the second burst ends like the first
				if got := k.offer(600, c.enough/4); got < burst*3/4 || got > burst*5/4+notice {
					t.Errorf("%s, at most %v: in a burst the longest wait was %v, want about %v", c.name, most, got, burst)
				}
				k.offer(60, 5*time.Second)
			}
			k.offer(600, c.enough+time.Second)
			if got := k.offer(600, 10*time.Second); got > 100*time.Millisecond {
				t.Errorf("%s, at most %v: the queue never drains and makes callers wait %v for work of 50ms", c.name, most, got)
			}
		}
	}
}

func TestAFreshGateDoesNotTakeOverloadForABurst(t *testing.T) {
	c := newCrowd()
	c.offer(400, 2*time.Second)
	if got := c.offer(400, 2*time.Second); got > 100*time.Millisecond {
		t.Errorf("two seconds after the start the queue makes callers wait %v", got)
	}
}

// After an overload and some minutes without arrivals, the demand of a gate was once a hundred.
func TestAnIdleGateHasNoDemand(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), QueueSize: 4, MaxWait: time.Second})
	now := time.Duration(0)
	for range 600 { // ten times the capacity
		g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
		if now += 10 * time.Millisecond; now%(100*time.Millisecond) == 0 && g.running > 0 {
			g.End(now, g.Started(), limit.Success)
		}
	}
	if d := g.Demand(now); d < 5 {
		t.Errorf("ten times what can be done comes, and the demand is %.2f", d)
	}
	if g.running > 0 {
		g.End(now, g.Started(), limit.Success)
	}
	for _, idle := range []time.Duration{time.Minute, 10 * time.Minute, 3 * time.Hour} {
		if d := g.Demand(now + idle); d > 0.1 {
			t.Errorf("after %v without a call the demand is %.2f", idle, d)
		}
		g.roll(now + idle)
	}
}
