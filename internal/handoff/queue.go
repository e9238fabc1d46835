package handoff

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Verdict is what became of an offer.
type Verdict uint8

const (
	Accepted Verdict = iota // queued
	Waiting                 // until its submitter is told
	Full
	Closed
	Left // the submitter left; its job is not queued
)

// End is how a worker's job ended.
type End uint8

const (
	Ran  End = iota
	Void     // it was not wanted any more
)

// Ticket names a job that was accepted. The zero Ticket names none.
type Ticket struct {
	level int
	seq   uint64
}

// Worker is one that takes jobs. It belongs to the queue while it is parked.
type Worker struct {
	Turn uint64 // the number of the job it took last, over all workers

	wake  chan struct{}
	busy  bool
	gone  bool          // its own decision
	exit  bool          // told to end, before it was woken
	since time.Duration // parked: the first Retire that found it so; 0: none yet
}

// Sleep blocks a worker that Take gave no job until it is called. False: it is to
// end.
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
	verdict    Verdict
	patient    bool // may be told late
	called     bool // as the late one that is called
	ready      chan struct{}
	place      place
	next, prev *Waiter[T]
}

// NewWaiter returns one. Its channel belongs to the synctest bubble it is made in.
func NewWaiter[T any]() *Waiter[T] { return &Waiter[T]{ready: make(chan struct{}, 1)} }

// clear lets go of the job.
func (w *Waiter[T]) clear() {
	var none T
	w.value = none
}

// Told receives when the submitter is told what became of its job; then EndWait
// says what.
func (w *Waiter[T]) Told() <-chan struct{} { return w.ready }

// Ticket names the job once it is accepted.
func (w *Waiter[T]) Ticket() Ticket { return w.ticket }

// Queue is the meeting place. It must not be copied.
type Queue[T any] struct {
	start   func(*Worker)    // makes a new worker run
	send    func(signals[T]) // sendAll, but in tests that send one by one
	full    atomic.Uint32    // what core.full says
	_       [128]byte        // refusals read it, and all other operations write what follows
	mu      sync.Mutex
	core    core[T]
	drained chan struct{} // closed once the queue is closed and empty
}

// Init makes the queue work. start is called, without the lock, for each new
// worker; that is to call Take before long.
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
	if s.worker != nil || s.told != nil || s.exits != nil {
		q.send(s)
	}
}

// sendAll sends signals, without the lock.
func (q *Queue[T]) sendAll(s signals[T]) {
	if s.worker != nil {
		q.wake(s.worker)
	}
	for w := s.told; w != nil; {
		next := w.next
		w.next = nil
		w.ready <- struct{}{} // from here on it is the submitter's
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

// Full reports whether the level was found full, and has been since, at the cost of a
// load. False may only mean that no offer has found it so yet.
func (q *Queue[T]) Full(lv int) bool { return q.full.Load()&(1<<lv) != 0 }

// Offer hands a job over: it is Accepted, or the queue is Full or Closed.
func (q *Queue[T]) Offer(v *T, lv int) (Verdict, Ticket) {
	q.mu.Lock()
	verdict, seq := q.core.offer(v, lv)
	q.done()
	return verdict, Ticket{lv, seq}
}

// Wait is Offer for a submitter that waits for room if there is none. If the verdict
// is Waiting it listens to Told and then, or when it has waited for long enough,
// calls EndWait. A patient one may be told late.
func (q *Queue[T]) Wait(w *Waiter[T], v T, lv int, patient bool) Verdict {
	q.mu.Lock()
	w.patient = patient
	verdict := q.core.wait(w, v, lv)
	q.settle()
	if verdict != Waiting {
		w.clear()
	}
	return verdict
}

// EndWait ends a wait: Accepted, Closed, or Left if the submitter was not told yet
// and its job has no place. expired says that it leaves by itself because it has
// waited for long enough.
func (q *Queue[T]) EndWait(w *Waiter[T], told, expired bool) Verdict {
	if !told && !q.leave(w, expired) {
		<-w.ready // about to be told
	}
	if w.called {
		q.relay(w)
	}
	w.clear()
	return w.verdict
}

// leave takes out a submitter that has not been told. False: it is about to be.
func (q *Queue[T]) leave(w *Waiter[T], expired bool) bool {
	q.mu.Lock()
	was := q.core.leave(w, expired)
	q.settle()
	return was != nowhere
}

// relay says that a late submitter runs that was called.
func (q *Queue[T]) relay(w *Waiter[T]) {
	q.mu.Lock()
	w.called = false
	q.core.telling = false
	q.settle()
}

// Take ends the job of a worker, if it has one, and moves the next to *v. False:
// there is none; then the worker sleeps.
func (q *Queue[T]) Take(w *Worker, end End, v *T) (lv int, ok bool) {
	q.mu.Lock()
	lv, ok = q.core.take(w, end, v)
	q.done()
	return lv, ok
}

// Remove takes a job out that is still queued; then Finish follows.
func (q *Queue[T]) Remove(t Ticket) bool {
	q.mu.Lock()
	ok := q.core.remove(t)
	q.settle()
	return ok
}

// Purge takes the queued jobs out for which dead returns true, in the time that it takes to ask
// for each; then Finish follows.
func (q *Queue[T]) Purge(dead func(*T) bool) []T {
	q.mu.Lock()
	all := q.core.purge(dead)
	q.settle()
	return all
}

// Close refuses what is offered from now on and the submitters that wait. What is queued stays
// for the workers, which end when there is none.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.core.close()
	q.settle()
}

// Drop takes every queued job out of a closed queue; then Finish follows.
func (q *Queue[T]) Drop() []T {
	q.mu.Lock()
	all := q.core.drop()
	q.settle()
	return all
}

// Finish says that all is done about n jobs that were taken out.
func (q *Queue[T]) Finish(n int) {
	if n == 0 {
		return
	}
	q.mu.Lock()
	q.core.out -= n
	q.settle()
}

// Drained is closed once the queue is closed and no job is queued, active or to be
// finished.
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

// Resize sets how many workers may be busy. Too many end after their jobs.
func (q *Queue[T]) Resize(limit int) {
	q.mu.Lock()
	q.core.limit = limit
	q.settle()
}

// SetRooms sets how many jobs may be ahead of one at each level, beside the size
// of the queue. A less important level never gets more than one above it.
func (q *Queue[T]) SetRooms(rooms [Levels]int) {
	q.mu.Lock()
	q.core.setRooms(rooms)
	q.settle()
}

// SetLow sets the low mark: patient submitters are told once the queue holds no
// more jobs. They are told at once where it is the size of the queue or more.
func (q *Queue[T]) SetLow(n int) {
	q.mu.Lock()
	q.core.low = n
	q.settle()
}

// Flush tells all who are late.
func (q *Queue[T]) Flush() {
	q.mu.Lock()
	q.core.flush()
	q.settle()
}

// Retire lets workers go that have been parked for the time, those first that were
// parked first, and keeps so many. Those parked since the last call count from now:
// a worker that parks reads no clock. It returns how many left.
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
	if c.queued+c.active == 0 && c.workers <= keep { // give the memory of a long queue back
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
