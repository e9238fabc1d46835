package memory

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
)

const (
	levels     = int(spillway.Critical-spillway.Low) + 1
	floorEvery = 200 // the lower waiting priorities get one run in floorEvery, in turn
)

// item is a job and its history. It is ready, delayed, running or dead.
type item struct {
	job      jobqueue.Job
	id       uint64
	size     int
	enqueued time.Time

	attempts int       // counted runs begun
	run      uint64    // ID of the current run; 0: none
	due      time.Time // set while delayed
	known    *known    // the job's key
	purged   bool      // set while running: the job is not retried

	reason string // why the job died
	died   time.Time
}

// known is a remembered key. It outlives its job and must not keep the payload alive.
type known struct {
	key   string
	until time.Time
}

// core holds the jobs and moves them between states. Callers pass in the time. core has no lock and
// never blocks.
type core struct {
	cfg     Config
	lastID  uint64
	lastRun uint64
	ready   [levels][]*item // by priority, the lowest first
	delayed dueHeap
	running map[uint64]*item
	dead    []*item // the oldest first
	count   int     // all jobs above
	bytes   int

	keys      map[string]*known
	keyOrder  []*known // the oldest first
	overtaken int      // runs that passed over a lower waiting priority
	nextLow   int      // the lower priority that is the next to get its run

	ended time.Time     // when a job last left the queue
	pace  time.Duration // moving mean of the time between departures
}

func newCore(cfg Config) *core {
	return &core{cfg: cfg, running: map[uint64]*item{}, keys: map[string]*known{}}
}

func level(p spillway.Priority) int {
	return int(min(max(p, spillway.Low), spillway.Critical) - spillway.Low)
}

// enqueue accepts a job, unless its key is known or there is no room.
func (c *core) enqueue(now time.Time, job jobqueue.Job) (duplicate bool, full *spillway.Rejection) {
	c.forget(now)
	c.promote(now)
	if _, known := c.keys[job.Key]; known {
		return true, nil
	}
	it := &item{job: job, size: sizeOf(job), enqueued: now}
	if c.count >= c.cfg.MaxQueued || c.bytes+it.size > mostBytes {
		return false, &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: c.advice()}
	}
	it.known = &known{key: job.Key, until: now.Add(c.cfg.Dedupe)}
	c.keys[job.Key] = it.known
	c.keyOrder = append(c.keyOrder, it.known)
	c.lastID++
	it.id = c.lastID
	c.count, c.bytes = c.count+1, c.bytes+it.size
	wait := it.job.Delay
	it.job.Delay = 0
	c.wait(now, it, wait)
	return false, nil
}

func sizeOf(job jobqueue.Job) int {
	n := len(job.Key) + len(job.Payload)
	for name, value := range job.Header {
		n += len(name) + len(value)
	}
	return n
}

// forget drops the expired keys.
func (c *core) forget(now time.Time) {
	n := 0
	for n < len(c.keyOrder) && !c.keyOrder[n].until.After(now) {
		c.forgetKey(c.keyOrder[n])
		c.keyOrder[n] = nil
		n++
	}
	c.keyOrder = c.keyOrder[n:]
}

// forgetKey drops a key, unless the key already belongs to another job.
func (c *core) forgetKey(k *known) {
	if c.keys[k.key] == k {
		delete(c.keys, k.key)
	}
}

// wait makes a job ready, now or after a delay.
func (c *core) wait(now time.Time, it *item, after time.Duration) {
	if after > 0 {
		it.due = now.Add(after)
		heap.Push(&c.delayed, it)
		return
	}
	l := level(it.job.Priority)
	c.ready[l] = append(c.ready[l], it)
}

// promote makes due delayed jobs ready. It runs before any other step that makes a job ready, so
// that the order does not depend on the time of a call.
func (c *core) promote(now time.Time) {
	for len(c.delayed) > 0 && !c.delayed[0].due.After(now) {
		c.wait(now, heap.Pop(&c.delayed).(*item), 0)
	}
}

// next returns the priority of the job that take would return. ok is false if there is none.
func (c *core) next(now time.Time) (l int, ok bool) {
	c.promote(now)
	if len(c.running) >= c.cfg.MaxInFlight {
		return 0, false
	}
	highest := levels - 1
	for highest >= 0 && len(c.ready[highest]) == 0 {
		highest--
	}
	if c.overtaken >= floorEvery-1 {
		for i := range highest {
			if l := (c.nextLow + i) % highest; len(c.ready[l]) > 0 {
				return l, true
			}
		}
	}
	return highest, highest >= 0
}

// take begins a run of the next job. It returns nil if there is none.
func (c *core) take(now time.Time) *item {
	l, ok := c.next(now)
	if !ok {
		return nil
	}
	it := c.ready[l][0]
	c.ready[l][0] = nil
	c.ready[l] = c.ready[l][1:]
	if c.overtaken++; c.overtaken >= floorEvery {
		c.overtaken, c.nextLow = 0, l+1
	}
	if !slices.ContainsFunc(c.ready[:l], func(q []*item) bool { return len(q) > 0 }) {
		c.overtaken = 0 // no lower priority waits
	}
	c.lastRun++
	it.run = c.lastRun
	it.attempts++
	c.running[it.run] = it
	return it
}

// nextDue returns when the next delayed job becomes ready. It returns false if there is none.
func (c *core) nextDue() (time.Time, bool) {
	if len(c.delayed) == 0 {
		return time.Time{}, false
	}
	return c.delayed[0].due, true
}

// settle ends a run. It reports whether the run still held its job.
func (c *core) settle(now time.Time, run uint64, v engine.Settlement) bool {
	it := c.running[run]
	if it == nil {
		return false
	}
	c.promote(now)
	delete(c.running, run)
	it.run = 0
	if v.Fate == engine.Defer {
		it.attempts--
	}
	switch {
	case v.Fate == engine.Finish:
		c.leave(now, it)
	case it.purged && v.Fate != engine.Bury:
		c.forgetKey(it.known)
		c.leave(now, it)
	case v.Fate == engine.Bury:
		it.reason, it.died = v.Reason, now
		c.dead = append(c.dead, it)
	default:
		c.wait(now, it, v.After)
	}
	return true
}

// lose takes the job from a run that did not end in time. It reports whether the run still held its
// job, and whether the job is now a dead letter.
func (c *core) lose(now time.Time, run uint64) (had, buried bool) {
	v := engine.Settlement{Fate: engine.Retry}
	if it := c.running[run]; it != nil && it.attempts >= engine.Attempts(c.cfg.Policy) {
		v = engine.Settlement{Fate: engine.Bury, Reason: "the last run neither ended nor reported progress in time"}
	}
	had = c.settle(now, run, v)
	return had, had && v.Fate == engine.Bury
}

// leave removes a job for good.
func (c *core) leave(now time.Time, it *item) {
	c.count, c.bytes = c.count-1, c.bytes-it.size
	if !c.ended.IsZero() {
		c.pace += (min(now.Sub(c.ended), time.Minute) - c.pace) / 8
	}
	c.ended = now
}

// advice estimates when a full queue may have room, from the rate of departures. It adds jitter.
func (c *core) advice() time.Duration {
	d := min(max(c.pace, 100*time.Millisecond), time.Minute)
	return d + rand.N(d/4)
}

// replay turns a dead letter back into a job.
func (c *core) replay(now time.Time, id uint64) bool {
	i := slices.IndexFunc(c.dead, func(it *item) bool { return it.id == id })
	if i < 0 {
		return false
	}
	c.promote(now)
	it := c.dead[i]
	c.dead = slices.Delete(c.dead, i, i+1)
	it.attempts, it.purged, it.reason, it.died = 0, false, "", time.Time{}
	c.lastID++
	it.id = c.lastID // a dead letter's number is never reused
	c.wait(now, it, 0)
	return true
}

// purge removes the jobs that wait, or the dead letters, and their keys. It returns the number removed.
func (c *core) purge(now time.Time, dead bool) (n int) {
	var all []*item
	if dead {
		all, c.dead = c.dead, nil
	} else {
		all, c.delayed = c.delayed, nil
		for l := range c.ready {
			all = append(all, c.ready[l]...)
			c.ready[l] = nil
		}
		for _, it := range c.running {
			it.purged = true
		}
	}
	for _, it := range all {
		c.forgetKey(it.known)
		c.leave(now, it)
	}
	return len(all)
}

// depths counts the jobs.
func (c *core) depths(now time.Time) (all jobqueue.Depth, each map[spillway.Priority]jobqueue.Depth) {
	c.promote(now)
	var by [levels]jobqueue.Depth
	for l := range c.ready {
		by[l].Ready = len(c.ready[l])
	}
	for _, it := range c.delayed {
		by[level(it.job.Priority)].Delayed++
	}
	for _, it := range c.running {
		by[level(it.job.Priority)].InFlight++
	}
	each = map[spillway.Priority]jobqueue.Depth{}
	for l, d := range by {
		each[spillway.Low+spillway.Priority(l)] = d
		all.Ready, all.Delayed, all.InFlight = all.Ready+d.Ready, all.Delayed+d.Delayed, all.InFlight+d.InFlight
	}
	return all, each
}

// dueHeap is a min-heap by due time. Of two jobs due at once, the older one comes first.
type dueHeap []*item

func (h dueHeap) Len() int      { return len(h) }
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h dueHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].id < h[j].id
}
func (h *dueHeap) Push(x any) { *h = append(*h, x.(*item)) }
func (h *dueHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return it
}
