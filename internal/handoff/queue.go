package handoff

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// State is the outcome of an offer.
type State uint8

const (
	Accepted State = iota // queued
	Waiting               // the submitter waits for room until it gets its signal
	Full
	Closed
	Left // the submitter left; its job is not queued
)

// End is how a worker's job ended.
type End uint8

const (
	Ran  End = iota
	Void     // the job was no longer wanted
)

// Ticket names a job that was accepted. The zero Ticket names no job.
type Ticket struct {
	level int
	seq   uint64
}

// Worker takes jobs. The queue owns a worker while the worker is parked.
type Worker struct {
	Turn uint64 // number of its latest job, counted over all workers

	wake  chan struct{}
	busy  bool
	gone  bool          // found the queue closed and no job to take; must end
	exit  bool          // must end; set before the worker is woken
	since time.Duration // time of the first Retire that found the worker parked; 0: none yet
}

// Sleep blocks until the worker is called. A worker calls Sleep when Take returned no job. Sleep
// returns false if the worker must end.
func (w *Worker) Sleep() bool {
	if w.gone {
		return false
	}
	<-w.wake
	return !w.exit
}

// Waiter is a submitter that waits for room. It can be used again after EndWait.
type Waiter[T any] struct {
	value      T
	level      int
	ticket     Ticket
	state      State
	mayBeLate  bool // may get its signal late
	called     bool // is the late submitter that is called
	ready      chan struct{}
	place      place
	next, prev *Waiter[T]
}

// NewWaiter returns a Waiter. Its channel belongs to the synctest bubble in which it is made.
func NewWaiter[T any]() *Waiter[T] { return &Waiter[T]{ready: make(chan struct{}, 1)} }

// clear drops the job.
func (w *Waiter[T]) clear() {
	var none T
	w.value = none
}

// Ready receives when the outcome of the job is known. EndWait then returns the outcome.
func (w *Waiter[T]) Ready() <-chan struct{} { return w.ready }

// Ticket names the job once it is accepted.
func (w *Waiter[T]) Ticket() Ticket { return w.ticket }

// Queue hands jobs to workers. It must not be copied.
type Queue[T any] struct {
	start   func(*Worker)    // makes a new worker run
	send    func(signals[T]) // sendAll; some tests send signals one by one
	full    atomic.Uint32    // copy of core.full
	_       [128]byte        // separates full, which refusals read, from fields that all other operations write
	mu      sync.Mutex
	core    core[T]
	drained chan struct{} // closed once the queue is closed and empty
}

// Init makes the queue ready for use. The queue calls start, without the lock, for each new worker.
// The worker must call Take soon.
func (q *Queue[T]) Init(size, limit int, start func(*Worker)) {
	q.start, q.send = start, q.sendAll
	q.core.size, q.core.limit, q.core.low = size, limit, math.MaxInt
	q.core.setRooms([Levels]int{size, size, size, size})
}

// done releases the lock after an operation that seldom breaks a rule.
func (q *Queue[T]) done() {
	if q.core.steady() {
		q.mu.Unlock()
	} else {
		q.settle()
	}
}

// settle settles the core, releases the lock and sends the signals.
func (q *Queue[T]) settle() {
	c := &q.core
	c.settle()
	if q.full.Load() != c.full {
		q.full.Store(c.full)
	}
	if c.closed && q.drained != nil && c.empty() {
		close(q.drained)
		q.drained = nil
	}
	s := c.signals
	c.signals = signals[T]{}
	q.mu.Unlock()
	if s.worker != nil || s.notified != nil || s.exits != nil {
		q.send(s)
	}
}

// sendAll sends signals, without the lock.
func (q *Queue[T]) sendAll(s signals[T]) {
	if s.worker != nil {
		q.wake(s.worker)
	}
	for w := s.notified; w != nil; {
		next := w.next
		w.next = nil
		w.ready <- struct{}{} // from here on the submitter owns w
		w = next
	}
	for _, w := range s.exits {
		w.wake <- struct{}{}
	}
}

func (q *Queue[T]) wake(w *Worker) {
	if w.wake != nil {
		w.wake <- struct{}{}
		return
	}
	w.wake = make(chan struct{}, 1)
	q.start(w)
}

// Full reports whether an offer found the level full and the level has stayed full. Full costs a
// load. False may only mean that no offer has found the level full yet.
func (q *Queue[T]) Full(lv int) bool { return q.full.Load()&(1<<lv) != 0 }

// Offer hands a job over. The state is Accepted, Full or Closed.
func (q *Queue[T]) Offer(v *T, lv int) (State, Ticket) {
	q.mu.Lock()
	state, seq := q.core.offer(v, lv)
	q.done()
	return state, Ticket{lv, seq}
}

// Wait is like Offer, but the submitter waits if there is no room. Wait does not block. If the
// state is Waiting, the submitter listens to Ready. After the signal, or to give up, it calls
// EndWait. If mayBeLate is set, the submitter may get its signal late.
func (q *Queue[T]) Wait(w *Waiter[T], v T, lv int, mayBeLate bool) State {
	q.mu.Lock()
	w.mayBeLate = mayBeLate
	state := q.core.wait(w, v, lv)
	q.settle()
	if state != Waiting {
		w.clear()
	}
	return state
}

// EndWait ends a wait and returns Accepted, Closed, or Left. Left means that the submitter got no
// signal and its job was not accepted. notified means that the submitter got the signal. expired means
// that it leaves because it has waited for as long as it may.
func (q *Queue[T]) EndWait(w *Waiter[T], notified, expired bool) State {
	if !notified && !q.leave(w, expired) {
		<-w.ready // the signal is on its way
	}
	if w.called {
		q.relay(w)
	}
	w.clear()
	return w.state
}

// leave removes a submitter without a signal. It returns false if the signal is on its way.
func (q *Queue[T]) leave(w *Waiter[T], expired bool) bool {
	q.mu.Lock()
	was := q.core.leave(w, expired)
	q.settle()
	return was != nowhere
}

// relay records that the called late submitter runs.
func (q *Queue[T]) relay(w *Waiter[T]) {
	q.mu.Lock()
	w.called = false
	q.core.notifying = false
	q.settle()
}

// Take ends the job of a worker, if it has one, and moves the next job to *v. ok is false if there
// is no job; the worker then calls Sleep.
func (q *Queue[T]) Take(w *Worker, end End, v *T) (lv int, ok bool) {
	q.mu.Lock()
	lv, ok = q.core.take(w, end, v)
	q.done()
	return lv, ok
}

// Remove takes out a job that is still queued. After Remove returns true, the caller calls Finish.
func (q *Queue[T]) Remove(t Ticket) bool {
	q.mu.Lock()
	ok := q.core.remove(t)
	q.settle()
	return ok
}

// Purge takes out and returns the queued jobs for which dead returns true. It calls dead under the
// lock, once per queued job. The caller then calls Finish.
func (q *Queue[T]) Purge(dead func(*T) bool) []T {
	q.mu.Lock()
	all := q.core.purge(dead)
	q.settle()
	return all
}

// Close refuses all later offers and the waiting submitters. Queued jobs stay for the workers,
// which end when no job is left.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.core.close()
	q.settle()
}

// Drop takes out and returns every job of a closed queue. The caller then calls Finish.
func (q *Queue[T]) Drop() []T {
	q.mu.Lock()
	all := q.core.drop()
	q.settle()
	return all
}

// Finish records that the owner is finished with n jobs that were taken out.
func (q *Queue[T]) Finish(n int) {
	if n == 0 {
		return
	}
	q.mu.Lock()
	q.core.out -= n
	q.settle()
}

// Drained returns a channel that is closed once the queue is closed and no job is queued, active or
// waiting for Finish.
func (q *Queue[T]) Drained() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.core.closed && q.core.empty() {
		done := make(chan struct{})
		close(done)
		return done
	}
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	return q.drained
}

// Resize sets how many workers may be busy. Excess workers are parked after their jobs.
func (q *Queue[T]) Resize(limit int) {
	q.mu.Lock()
	q.core.limit = limit
	q.settle()
}

// SetRooms sets how many jobs may be ahead of a new job at each level. The size of the queue
// remains a bound on all jobs. A level never gets more room than a more important level.
func (q *Queue[T]) SetRooms(rooms [Levels]int) {
	q.mu.Lock()
	q.core.setRooms(rooms)
	q.settle()
}

// SetLow sets the low mark: submitters that may be late get their signals once the queue holds no more than
// n jobs. If n is at least the size of the queue, the signals are sent at once.
func (q *Queue[T]) SetLow(n int) {
	q.mu.Lock()
	q.core.low = n
	q.settle()
}

// Flush signals all late submitters.
func (q *Queue[T]) Flush() {
	q.mu.Lock()
	q.core.flush()
	q.settle()
}

// Retire ends workers that have been parked for at least after, longest parked first, and keeps at
// least keep workers. For workers that parked since the last call, the time counts from now: a
// worker that parks reads no clock. Retire returns how many workers ended.
func (q *Queue[T]) Retire(now, after time.Duration, keep int) (left int) {
	q.mu.Lock()
	c := &q.core
	for i := len(c.parked) - 1; i >= 0 && c.parked[i].since == 0; i-- {
		c.parked[i].since = now
	}
	for left < len(c.parked) && c.workers-left > keep && now-c.parked[left].since >= after {
		left++
	}
	c.retire(left)
	if c.queued+c.active == 0 && c.workers <= keep { // free the memory of a long queue
		c.trim()
	}
	q.settle()
	return left
}

// Ahead is how many jobs are queued at the levels up to lv.
func (q *Queue[T]) Ahead(lv int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.ahead(lv)
}

// Picture is the state at one moment.
type Picture struct {
	Counts
	Workers, Active int
	Queued, Waiting [Levels]int
	Full            bool // a level was found full and still is
}

// Picture returns the state.
func (q *Queue[T]) Picture() (p Picture) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := &q.core
	p = Picture{Counts: c.ledger(), Workers: c.workers, Active: c.active, Full: c.full != 0}
	for lv := range Levels {
		p.Queued[lv], p.Waiting[lv] = c.queue[lv].len(), c.waiting[lv].n
	}
	return p
}
