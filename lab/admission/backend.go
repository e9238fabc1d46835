package admission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/service"
)

// The backends.
const (
	nWay      = "N-way"     // so many at a time, first come, first served: more at once only wait
	degrading = "degrading" // more at once slow each other down, and the total falls
)

var backends = []string{nWay, degrading}

// backend is what the service waits for.
type backend interface {
	// Ask returns when the answer is there, or when ctx ends.
	Ask(ctx context.Context) error
}

func newBackend(j service.Job) (backend, error) {
	switch j.Backend {
	case nWay:
		return &nway{work: j.Work, random: rand.New(rand.NewPCG(j.Seed, 2))}, nil
	case degrading:
		return service.NewDatabase(j.Work, j.Seed)
	}
	return nil, fmt.Errorf("unknown backend %q: known are %s and %s", j.Backend, nWay, degrading)
}

// nway has Slots slots and a hidden queue. A caller that leaves takes its call out of
// the queue; a call in a slot runs to its end.
//
// A slot's next call begins when the one before was to end, not when the timer fired:
// its capacity is exact as long as some wait, also on a busy machine.
type nway struct {
	work service.Work

	mu      sync.Mutex
	random  *rand.Rand
	running int
	queue   []*slotCall // oldest first, with those that left
}

type slotCall struct {
	came time.Time
	gone bool // its caller left before it began
	done chan struct{}
}

func (b *nway) Ask(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &slotCall{came: time.Now(), done: make(chan struct{})}
	b.mu.Lock()
	if b.running < b.work.Slots {
		b.running++
		b.begin(c, c.came)
	} else {
		b.queue = append(b.queue, c)
	}
	b.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		b.mu.Lock()
		c.gone = true
		b.mu.Unlock()
		return ctx.Err()
	}
}

// begin gives c a slot that is free since then. It needs mu.
func (b *nway) begin(c *slotCall, since time.Time) {
	if since.Before(c.came) {
		since = c.came
	}
	end := since.Add(b.work.Time(b.random))
	time.AfterFunc(time.Until(end), func() { b.finish(c, end) })
}

func (b *nway) finish(c *slotCall, end time.Time) {
	close(c.done)
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 {
		next := b.queue[0]
		b.queue[0], b.queue = nil, b.queue[1:]
		if !next.gone {
			b.begin(next, end)
			return
		}
	}
	b.running--
}
