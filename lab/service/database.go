package service

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// Work is what a request costs the backend. Its fields are flags of the experiments.
type Work struct {
	Slots int           `group:"Size" default:"10" help:"Requests that the backend does at full speed at one time; with more of them it slows down."`
	Min   time.Duration `name:"min-work" group:"Size" default:"20ms" help:"The least time that a request takes the backend alone."`
	Max   time.Duration `name:"max-work" group:"Size" default:"60ms" help:"The most time that a request takes the backend alone."`
}

// Capacity is how many requests a second Slots callers complete back to back.
func (w Work) Capacity() float64 { return float64(w.Slots) / ((w.Min + w.Max) / 2).Seconds() }

// Time is a random one between the least and the most.
func (w Work) Time(random *rand.Rand) time.Duration {
	return w.Min + time.Duration(random.Float64()*float64(w.Max-w.Min))
}

// Check says what is wrong with it.
func (w Work) Check() error {
	if w.Slots < 1 || w.Min <= 0 || w.Max < w.Min {
		return fmt.Errorf("slots is %d and work from %v to %v: want at least 1, and more than 0s but no more than the most", w.Slots, w.Min, w.Max)
	}
	return nil
}

// Database is a model of the scarce resource behind a service. Up to Slots queries run
// at full speed. Beyond that they share it, and sharing has a cost: with c queries
// running the total throughput falls to √(Slots/c), as in a database with contention
// for locks, buffers and processors. Four times too many queries halve it. It refuses
// nothing and reports nothing: answers only take longer.
//
// The query of a caller that leaves is cancelled. Most databases are worse at this, so
// the model favours callers that send too much.
type Database struct {
	work Work
	base time.Time

	mu     sync.Mutex
	random *rand.Rand
	calls  calls         // running, the next to end first
	served time.Duration // work done for every running call since the start
	at     time.Duration // when that was so
	peak   int
	timer  *time.Timer
}

// NewDatabase returns an idle database. It has no goroutine.
func NewDatabase(work Work, seed uint64) (*Database, error) {
	if err := work.Check(); err != nil {
		return nil, err
	}
	d := &Database{work: work, base: time.Now(), random: rand.New(rand.NewPCG(seed, 1))}
	d.timer = time.AfterFunc(time.Hour, d.finish)
	d.timer.Stop()
	return d, nil
}

// Ask runs one query. It returns when the query is answered, or with ctx's error if ctx
// ends first.
func (d *Database) Ask(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &call{done: make(chan struct{})}
	d.mu.Lock()
	d.advance()
	c.ends = d.served + d.work.Time(d.random)
	heap.Push(&d.calls, c)
	d.peak = max(d.peak, len(d.calls))
	d.arm()
	d.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.index == answered {
		return nil
	}
	d.advance()
	heap.Remove(&d.calls, c.index)
	d.arm()
	return ctx.Err()
}

// Peak returns the most queries that ran at one time.
func (d *Database) Peak() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peak
}

// speed is how fast each running call is served; 1 is full speed.
func (d *Database) speed() float64 {
	return math.Pow(min(1, float64(d.work.Slots)/float64(len(d.calls))), 1.5)
}

// advance adds the work done for the running calls until now.
func (d *Database) advance() {
	now := time.Since(d.base)
	if len(d.calls) > 0 {
		d.served += time.Duration(float64(now-d.at) * d.speed())
	}
	d.at = now
}

// arm sets the timer to the end of the next call.
func (d *Database) arm() {
	if len(d.calls) == 0 {
		d.timer.Stop()
		return
	}
	left := max(d.calls[0].ends-d.served, 0)
	d.timer.Reset(time.Duration(math.Ceil(float64(left) / d.speed())))
}

// finish answers the calls that are done.
func (d *Database) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance()
	for len(d.calls) > 0 && d.calls[0].ends <= d.served {
		close(heap.Pop(&d.calls).(*call).done)
	}
	d.arm()
}

// answered is the index of a call that is no longer running.
const answered = -1

// call is a running query. It is done when the database's served reaches ends.
type call struct {
	ends  time.Duration
	index int
	done  chan struct{}
}

// calls is a heap of calls by their ends.
type calls []*call

func (c calls) Len() int           { return len(c) }
func (c calls) Less(i, j int) bool { return c[i].ends < c[j].ends }
func (c calls) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].index, c[j].index = i, j
}
func (c *calls) Push(x any) {
	x.(*call).index = len(*c)
	*c = append(*c, x.(*call))
}
func (c *calls) Pop() any {
	last := len(*c) - 1
	out := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	out.index = answered
	return out
}
