package service

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Work is what a request costs the backend.
type Work struct {
	Slots    int           // requests that the backend does at full speed at one time; with more of them it slows down
	Min, Max time.Duration // that a request takes the backend alone
}

// Capacity is how many requests a second Slots callers complete back to back.
func (w Work) Capacity() float64 { return float64(w.Slots) / ((w.Min + w.Max) / 2).Seconds() }

// Time is a random one between the least and the most.
func (w Work) Time(random *rand.Rand) time.Duration {
	return w.Min + time.Duration(random.Float64()*float64(w.Max-w.Min))
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
	calls  []*call       // running, the next to end first
	slow   float64       // how many times longer everything takes
	served time.Duration // work done for every running call since the start
	at     time.Duration // when that was so
	timer  *time.Timer
}

// NewDatabase returns an idle database. It has no goroutine.
func NewDatabase(work Work, seed uint64) *Database {
	d := &Database{work: work, base: time.Now(), random: rand.New(rand.NewPCG(seed, 1)), slow: 1}
	d.timer = time.AfterFunc(time.Hour, d.finish)
	d.timer.Stop()
	return d
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
	i, _ := slices.BinarySearchFunc(d.calls, c.ends, func(c *call, ends time.Duration) int { return cmp.Compare(c.ends, ends) })
	d.calls = slices.Insert(d.calls, i, c)
	d.arm()
	d.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i = slices.Index(d.calls, c)
	if i < 0 { // answered
		return nil
	}
	d.advance()
	d.calls = slices.Delete(d.calls, i, i+1)
	d.arm()
	return ctx.Err()
}

// Slow makes every query take so many times longer from now on, also those that run; 1 is
// the usual speed.
func (d *Database) Slow(times float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance()
	d.slow = times
	d.arm()
}

// speed is how fast each running call is served; 1 is full speed.
func (d *Database) speed() float64 {
	return math.Pow(min(1, float64(d.work.Slots)/float64(len(d.calls))), 1.5) / d.slow
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
		close(d.calls[0].done)
		d.calls = slices.Delete(d.calls, 0, 1)
	}
	d.arm()
}

// call is a running query. It is done when the database's served reaches ends.
type call struct {
	ends time.Duration
	done chan struct{}
}
