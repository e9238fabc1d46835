package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

// At four times the capacity, work is refused three times as fast as it is served.
func TestTheRefusedBookTheTimeTheyNeed(t *testing.T) {
	c := newCrowd()
	c.offer(800, 5*time.Second)
	if got := c.g.RetryAfter(spillway.Normal); got < 4*time.Second || got > 6*time.Second {
		t.Errorf("15 s of work were refused in 5 s, and half as much again may come back: in %v, want about 5s", got)
	}
	if got := c.g.RetryAfter(spillway.Critical); got > time.Second {
		t.Errorf("nobody as important was refused, and yet: come back in %v", got)
	}
	c.offer(800, 80*time.Second)
	if got := c.g.RetryAfter(spillway.Normal); got < adviceMost || got > adviceMost+time.Second {
		t.Errorf("after more than a minute: come back in %v, want %v and the queue", got, adviceMost)
	}
	c.offer(60, adviceMost+time.Second)
	if got := c.g.RetryAfter(spillway.Normal); got > 100*time.Millisecond {
		t.Errorf("all that was refused could have been served since: come back in %v", got)
	}
}

// The load of a crowd makes work take four times as long for a while. The advice to the crowd
// follows the service time from before the crowd.
func TestACrowdIsToldByTheBestRateOfLate(t *testing.T) {
	for _, slower := range []time.Duration{1, 4} {
		c := newCrowd()
		c.offer(150, 5*time.Second)
		c.takes = slower * 50 * time.Millisecond
		c.offer(5_000, time.Second)
		if got := c.g.RetryAfter(spillway.Normal); got < 12*time.Second || got > 18*time.Second {
			t.Errorf("4,800 callers at 200 a second, told at %d times the usual time: come back in %v", slower, got)
		}
	}
}
