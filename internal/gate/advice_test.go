package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

// Four times the capacity is refused three times as fast as it is served.
func TestTheRefusedBookTheTimeTheyNeed(t *testing.T) {
	c := newCrowd()
	c.offer(800, 5*time.Second)
	if got := c.g.RetryAfter(spillway.Normal); got < 8*time.Second || got > 12*time.Second {
		t.Errorf("15 s of work were refused in 5 s: come back in %v, want about 10s", got)
	}
	if got := c.g.RetryAfter(spillway.Critical); got > time.Second {
		t.Errorf("nobody as important was refused, and yet: come back in %v", got)
	}
	c.offer(800, 30*time.Second)
	if got := c.g.RetryAfter(spillway.Normal); got < adviceMost || got > adviceMost+time.Second {
		t.Errorf("after half a minute: come back in %v, want %v and the queue", got, adviceMost)
	}
	c.offer(60, adviceMost+time.Second)
	if got := c.g.RetryAfter(spillway.Normal); got > 100*time.Millisecond {
		t.Errorf("all that was refused could have been served since: come back in %v", got)
	}
}
