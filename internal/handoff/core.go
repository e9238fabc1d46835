package handoff

import (
	"math"
	"math/bits"

	"github.com/spillway-go/spillway/internal/priority"
)

const (
	// Levels is how many priorities there are; 0 is the most important.
	Levels = priority.Levels
	// Floor keeps the last level from starving: one in Floor jobs that are taken is of the least
	// important level that has jobs.
	Floor = 256
)

// Counts is the ledger of every offer that was not refused at once. At any time
//
//	Accepted = Ended + Void + Removed + Dropped + queued + active.
type Counts struct {
	Accepted [Levels]uint64
	Ended    uint64 // taken, run and ended
	Void     uint64 // taken, but no longer wanted
	Removed  uint64 // removed from the queue by its caller or by Purge
	Dropped  uint64 // removed from the queue by Drop
	// Left, Expired and Refused count submitters that waited for room in vain. A submitter in Left
	// gave up. A submitter in Expired had waited for as long as it may. A submitter in Refused was
	// waiting at Close.
	Left, Expired, Refused uint64
}

// core is the state and its rules, see doc.go. The caller holds the lock, calls settle at the end
// unless the core is steady, and sends the signals after it has released the lock.
//
// The fields that every job changes come first, so that they are in few cache lines.
type core[T any] struct {
	queued  int    // jobs
	active  int    // workers that are busy
	limit   int    // how many workers may be busy
	size    int    // how many jobs may be queued while no worker is free
	turns   uint64 // jobs taken
	used    uint8  // a bit for each level that has had a job
	narrow  uint8  // a bit for each level with less room than the size
	calling bool   // a worker is called
	calm    bool   // settle need only call workers and late submitters
	wakeAt  int    // a late submitter is called once at most wakeAt jobs are queued; -1: call none
	queue   [Levels]ring[T]

	full    uint32      // a bit for each level that was found full and still is
	rooms   [Levels]int // most jobs ahead of a new job, by level; never more than a more important level has
	out     int         // jobs that left the queue without a worker, and are not finished
	parked  []*Worker   // in order of parking
	workers int         // parked, called or busy
	closed  bool

	waiting   [Levels]list[T] // submitters that wait for room
	nWaiting  int
	late      list[T]
	low       int  // late submitters are called once the queue holds at most this many jobs
	notifying bool // a late submitter is called
	signals   signals[T]
	counts    Counts // counts that do not follow from queue and turns
}

// steady reports whether the rules hold without settle. They nearly always do.
func (c *core[T]) steady() bool {
	return c.calm && c.queued > c.wakeAt && (c.queued == 0 || c.calling || c.active >= c.limit)
}

// signals are the signals to send after the lock is released.
type signals[T any] struct {
	worker   *Worker    // the called worker
	notified *Waiter[T] // submitters, linked by next
	exits    []*Worker
}

func (c *core[T]) notify(w *Waiter[T]) { w.next, c.signals.notified = c.signals.notified, w }

// settle makes the rules hold again after a change.
func (c *core[T]) settle() {
	if c.nWaiting > 0 {
		c.admit()
	}
	if c.queued > 0 && c.active < c.limit && !c.calling {
		c.signals.worker = c.call()
	}
	if c.late.n > 0 && c.queued <= c.low && !c.notifying {
		c.notifying = true
		w := c.late.pop()
		w.called = true
		c.notify(w)
	}
	if c.full != 0 {
		c.full &= c.fullLevels()
	}
	if c.wakeAt = -1; c.late.n > 0 && !c.notifying {
		c.wakeAt = c.low
	}
	c.calm = c.nWaiting == 0 && c.full == 0 && !c.closed
}

// admit moves jobs of waiting submitters into the queue while there is room.
func (c *core[T]) admit() {
	for lv := range c.waiting {
		for l := &c.waiting[lv]; l.head != nil && c.room(lv); {
			w := l.pop()
			c.nWaiting--
			c.push(w)
			if w.mayBeLate && c.queued > c.low {
				c.late.push(w, late)
			} else {
				c.notify(w)
			}
		}
	}
}

// room reports whether one more job of a level may be queued.
func (c *core[T]) room(lv int) bool {
	free := max(c.limit-c.active, 0)
	// Not c.size+free, which may overflow: the size may be the largest int.
	return c.queued-free < c.size && (c.narrow&(1<<lv) == 0 || c.ahead(lv)-free < c.rooms[lv])
}

func (c *core[T]) ahead(lv int) (n int) {
	for i := range lv + 1 {
		n += c.queue[i].len()
	}
	return n
}

// fullLevels returns a bit for each level that has no room.
func (c *core[T]) fullLevels() (full uint32) {
	for lv := range Levels {
		if !c.room(lv) {
			full |= 1 << lv
		}
	}
	return full
}

// offer queues a job if there is room. It returns the number of an accepted job.
func (c *core[T]) offer(v *T, lv int) (State, uint64) {
	if c.closed {
		return Closed, 0
	}
	if !c.room(lv) {
		c.full, c.calm = c.fullLevels(), false
		return Full, 0
	}
	c.used |= 1 << lv
	c.queued++
	return Accepted, c.queue[lv].push(v)
}

// push accepts the job of a submitter that may have waited.
func (c *core[T]) push(w *Waiter[T]) {
	c.used |= 1 << w.level
	c.queued++
	w.state, w.ticket = Accepted, Ticket{w.level, c.queue[w.level].push(&w.value)}
}

// next returns the level whose turn it is. At least one job must be queued.
func (c *core[T]) next() int {
	c.turns++
	used := c.used
	if used&(used-1) == 0 {
		return bits.TrailingZeros8(used) % Levels
	}
	if c.turns%Floor == 0 {
		for lv := Levels - 1; ; lv-- {
			if c.queue[lv].len() > 0 {
				return lv
			}
		}
	}
	for lv := 0; ; lv++ {
		if c.queue[lv].len() > 0 {
			return lv
		}
	}
}

// wait is like offer, but the submitter waits if there is no room.
func (c *core[T]) wait(w *Waiter[T], v T, lv int) State {
	w.value, w.level = v, lv
	switch {
	case c.closed:
		w.state = Closed
	case c.room(lv):
		c.push(w)
	default:
		w.state = Waiting
		c.waiting[lv].push(w, waiting)
		c.nWaiting++
	}
	return w.state
}

// leave removes a submitter that waits or is late, and returns its list.
func (c *core[T]) leave(w *Waiter[T], expired bool) (was place) {
	was = w.place
	switch was {
	case waiting:
		c.waiting[w.level].remove(w)
		c.nWaiting--
		if w.state = Left; expired {
			c.counts.Expired++
		} else {
			c.counts.Left++
		}
	case late:
		c.late.remove(w)
	}
	return was
}

// take ends the job of a busy worker and gives the worker the next job. Without a next job the
// worker is parked, or gone if the queue is closed. A worker that is not busy has been called.
func (c *core[T]) take(w *Worker, end End, v *T) (lv int, ok bool) {
	if w.busy {
		c.active--
		if end == Void {
			c.counts.Void++
		}
		if c.nWaiting > 0 {
			c.admit() // the first waiting job may get this worker
		}
	} else {
		c.calling = false
	}
	w.busy = c.queued > 0 && c.active < c.limit
	switch {
	case w.busy:
		lv = c.next()
		c.queue[lv].pop(v)
		c.queued--
		c.active++
		w.Turn = c.turns
	case c.closed:
		c.workers--
		w.gone = true
	default:
		w.since = 0
		c.parked = append(c.parked, w)
	}
	return lv, w.busy
}

// call returns the worker that parked last, or a new worker.
func (c *core[T]) call() *Worker {
	c.calling = true
	n := len(c.parked) - 1
	if n < 0 {
		c.workers++
		return new(Worker)
	}
	w := c.parked[n]
	c.parked[n] = nil
	c.parked = c.parked[:n]
	return w
}

// remove takes out a job that is still queued.
func (c *core[T]) remove(t Ticket) bool {
	if !c.queue[t.level].remove(t.seq) {
		return false
	}
	c.queued--
	c.counts.Removed++
	c.out++
	return true
}

// purge takes out the queued jobs for which dead returns true.
func (c *core[T]) purge(dead func(*T) bool) (all []T) {
	for lv := range c.queue {
		all = append(all, c.queue[lv].purge(dead)...)
	}
	c.queued -= len(all)
	c.counts.Removed += uint64(len(all))
	c.out += len(all)
	return all
}

// drop takes out every queued job.
func (c *core[T]) drop() (all []T) {
	for lv := range c.queue {
		for c.queue[lv].len() > 0 {
			var v T
			c.queue[lv].pop(&v)
			all = append(all, v)
		}
	}
	c.queued = 0
	c.counts.Dropped += uint64(len(all))
	c.out += len(all)
	return all
}

// close refuses the waiting submitters and ends the parked workers.
func (c *core[T]) close() {
	c.closed = true
	for lv := range c.waiting {
		for c.waiting[lv].n > 0 {
			w := c.waiting[lv].pop()
			w.state = Closed
			c.counts.Refused++
			c.notify(w)
		}
	}
	c.nWaiting = 0
	c.flush()
	c.retire(len(c.parked))
}

// flush signals all late submitters.
func (c *core[T]) flush() {
	for c.late.n > 0 {
		c.notify(c.late.pop())
	}
}

// retire ends the n workers that parked first.
func (c *core[T]) retire(n int) {
	for _, w := range c.parked[:n] {
		w.exit = true
	}
	c.signals.exits = append(c.signals.exits, c.parked[:n]...)
	c.workers -= n
	kept := copy(c.parked, c.parked[n:])
	clear(c.parked[kept:])
	c.parked = c.parked[:kept]
}

// trim frees the memory that a long queue and many workers have left behind.
func (c *core[T]) trim() {
	if c.queued > 0 {
		return
	}
	for lv := range c.queue {
		c.queue[lv].shrink()
	}
	if len(c.parked) == 0 {
		c.parked = nil
	}
}

func (c *core[T]) setRooms(rooms [Levels]int) {
	most := math.MaxInt
	c.narrow = 0
	for lv, n := range rooms {
		most = min(most, n)
		if c.rooms[lv] = most; most < c.size {
			c.narrow |= 1 << lv
		}
	}
}

// ledger returns the current counts.
func (c *core[T]) ledger() Counts {
	all := c.counts
	all.Ended = c.turns - uint64(c.active) - all.Void
	for lv := range Levels {
		all.Accepted[lv] = c.queue[lv].seq
	}
	return all
}

// empty reports whether every job that was accepted is finished.
func (c *core[T]) empty() bool { return c.active == 0 && c.queued == 0 && c.out == 0 }
