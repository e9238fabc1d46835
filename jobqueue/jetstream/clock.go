package jetstream

import (
	"context"
	"sync"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// lookEach is the maximum age of the reading of the server's clock when a delayed job may be due.
const lookEach = time.Second

// serverClock tells the server's time. It advances with the monotonic clock, so that a jump of the
// local clock changes nothing.
type serverClock struct {
	mu     sync.Mutex
	server time.Time
	local  time.Time
}

func (c *serverClock) set(server time.Time) {
	c.mu.Lock()
	c.server, c.local = server, time.Now()
	c.mu.Unlock()
}

func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.local))
}

// refresh reads the server's clock again if the last reading is older than after: the clock may have
// been set.
func (c *serverClock) refresh(ctx context.Context, stream js.Stream, after time.Duration) {
	c.mu.Lock()
	fresh := time.Since(c.local) < after
	c.mu.Unlock()
	if fresh {
		return
	}
	if info, err := stream.Info(ctx); err == nil {
		c.set(info.TimeStamp)
	}
}
