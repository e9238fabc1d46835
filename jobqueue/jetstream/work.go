package jetstream

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue"
)

const (
	// floorEvery is how many runs start before a lower priority gets one. The lower priorities
	// have their turns one after the other.
	floorEvery = 200
	// sentryWait is how long a request for the next job of an empty priority stays at the engine.
	// If the answer comes while all handlers are busy, the job waits for a handler. So sentryWait
	// must be short.
	sentryWait = time.Second
	// slotsFor is how long a worker keeps slots while there is work. Then other processes get their
	// turn.
	slotsFor = time.Second
	// heldFor is how long a rejected job is tried again in this process. Then the job goes back to
	// whoever asks: another process may have what the job needs. A shorter wait in this process
	// spares the engine a record and a delivery.
	heldFor = time.Second
	// deferredEach bounds the jobs that wait in this process after a rejection by a resource that
	// they need, for each job that may run. Further such jobs wait at the engine, for heldFor at
	// least.
	deferredEach = 4
	// limiterAgain is the longest pause before the limiter of this process is asked again. The end
	// of a job also causes a request. The limiter's advice, up to a minute, spreads remote callers.
	// A local request costs nothing, and other jobs may have made room.
	limiterAgain = time.Second
)

// worker is one call of Work: a dispatcher that requests jobs in order of priority, and a goroutine
// for each running job.
//
// The dispatcher requests jobs only while it holds a slot. An empty priority gets a sentry, which
// is a request that waits at the engine. The dispatcher does not ask for that priority again until
// the sentry has answered.
type worker struct {
	q       *queue
	handler jobqueue.Handler
	ctx     context.Context // the context of Work
	slots   *slotHolder
	kept    keeper

	sentries [len(priorities)]sentry
	started  int                   // runs started since a lower priority had its turn
	top      int                   // the highest priority that had a job lately
	nextLow  int                   // whose turn is next of the priorities below top, from the lowest
	running  int                   // jobs with a goroutine
	ended    chan ending           // has room for all running jobs
	deferred map[*task]*time.Timer // deferred tasks that wait in this process until they are due
	waiting  atomic.Int32          // the number of deferred tasks
	limited  []*task               // deferred tasks that the limiter refused, the oldest first
	due      chan *task            // has room for all deferred tasks
	again    []*task               // deferred tasks that are due
	newFirst bool                  // jobs from the engine came before deferred tasks at the latest start
}

// ending tells the dispatcher that a job's goroutine has ended.
type ending struct {
	slot *slot
	task *task
}

// sentry waits for the next job of a priority.
type sentry struct {
	pull   *pull
	answer chan *nats.Msg // nil message: no job came in time
	out    bool           // the request is at the engine
	held   *nats.Msg      // the sentry's job, not started yet
	since  time.Time      // when held came
}

// Work is described at jobqueue.Queue.
func (q *queue) Work(ctx context.Context, handler jobqueue.Handler) error {
	if handler == nil {
		return errors.New("jetstream: Work needs a handler")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w := q.worker(handler)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	if !q.join(w) {
		return q.failed()
	}
	defer q.leave(w)
	go func() { // ends with stop
		select {
		case <-q.draining:
			cancel()
		case <-stop.Done():
		}
	}()
	run, abandon := context.WithCancelCause(ctx) // context of the handlers
	defer abandon(nil)
	defer context.AfterFunc(q.closing, func() { abandon(jobqueue.ErrLost) })()
	w.ctx = run
	w.slots = &slotHolder{q: q, stop: stop, kept: &w.kept, pull: q.pull(q.names.slots, slotConsumer), arrived: make(chan *slot, 1)}
	w.kept.connected, w.kept.silence = q.nc.IsConnected, q.runLimit()
	go q.inspect(stop)
	keeping := w.kept.start(q.ackWait / 3)
	w.dispatch(stop)
	w.finish()
	keeping()
	if err := ctx.Err(); err != nil {
		return err
	}
	return q.failed()
}

// worker returns a worker that has no context and no slots yet.
func (q *queue) worker(handler jobqueue.Handler) *worker {
	w := &worker{
		q: q, handler: handler, deferred: map[*task]*time.Timer{},
		ended: make(chan ending, q.inFlight), due: make(chan *task, (deferredEach+2)*q.inFlight),
	}
	for i, p := range priorities {
		w.sentries[i] = sentry{pull: q.pull(q.names.jobs, p.String()), answer: make(chan *nats.Msg, 1)}
	}
	return w
}

// dispatch starts jobs until stop ends.
func (w *worker) dispatch(stop context.Context) {
	for stop.Err() == nil {
		busy := w.q.suspects.announce()
		if busy != nil {
			w.returnHeld()
			w.slots.keep(0)
			w.await(stop, busy)
			continue
		}
		started := w.start(stop)
		w.q.suspects.sure()
		if started == 0 {
			w.await(stop, nil)
		}
	}
}

// start starts ready jobs if slots are free, and returns the number started. If no job is ready,
// start sends sentries.
func (w *worker) start(stop context.Context) int {
	if w.running >= w.q.inFlight || w.saturated() && len(w.again) == 0 {
		w.slots.keep(0)
		return 0
	}
	w.slots.check()
	if w.slots.free() == 0 {
		w.slots.ask(w.q.inFlight - w.running)
		if w.slots.free() == 0 {
			return 0
		}
	}
	n := w.startSome(stop)
	if n == 0 {
		w.slots.keep(1)
		w.post(stop)
	}
	return n
}

// saturated reports whether taking more jobs is useless, because the limiter of this process would
// refuse them as well.
func (w *worker) saturated() bool { return len(w.limited)+w.running >= w.q.inFlight }

// startSome starts ready jobs, at most one for each free slot, and returns the number started.
// Deferred jobs that are due, and jobs from the engine, come first by turns: otherwise deferred jobs
// that are always due leave no slot to others.
func (w *worker) startSome(stop context.Context) int {
	w.newFirst = !w.newFirst
	if w.newFirst {
		n := w.startNew(stop)
		return n + w.startAgain()
	}
	n := w.startAgain()
	return n + w.startNew(stop)
}

// startAgain starts deferred jobs that are due.
func (w *worker) startAgain() int {
	n := 0
	for len(w.again) > 0 && w.slots.free() > 0 {
		t := w.again[0]
		w.again = w.again[1:]
		if w.kept.lost(t.msg) { // lost while the engine was away
			w.kept.drop(t.msg)
			w.q.counters.lost.Add(1)
			continue
		}
		w.launch(t)
		n++
	}
	return n
}

// startNew starts jobs from the engine in order of priority.
func (w *worker) startNew(stop context.Context) int {
	if w.saturated() {
		return 0
	}
	n := 0
	if w.started >= floorEvery && w.slots.free() > 0 {
		w.started = 0
		n += w.takeLower(stop)
	}
	top := -1
	for i := range w.sentries {
		if free := w.slots.free(); free > 0 {
			got := w.take(stop, i, free)
			if n += got; got > 0 && top < 0 {
				top = i
			}
		}
	}
	if top >= 0 {
		w.top = top
	}
	return n
}

// takeLower starts a job of the priority below top whose turn it is. A priority without jobs has no
// turn.
func (w *worker) takeLower(stop context.Context) int {
	lowest := len(w.sentries) - 1
	below := lowest - w.top
	for i := range below {
		rank := (w.nextLow + i) % below
		if got := w.take(stop, lowest-rank, 1); got > 0 {
			w.nextLow = rank + 1
			return got
		}
	}
	return 0
}

// take starts at most most jobs of one priority and returns the number started.
func (w *worker) take(stop context.Context, priority, most int) int {
	s := &w.sentries[priority]
	n := 0
	if s.held != nil {
		n += w.begin(s.held, s.since)
		w.seen(s)
	}
	if s.out || n >= most {
		return n
	}
	_ = s.pull.now(most-n, func(msg *nats.Msg) { n += w.begin(msg, time.Now()) }) // on error no job is ready
	return n
}

// post sends a sentry for every priority that has none. All these priorities were found empty.
func (w *worker) post(stop context.Context) {
	for i := range w.sentries {
		s := &w.sentries[i]
		if s.out || s.held != nil {
			continue
		}
		s.out = true
		w.q.suspects.lookOn() // until the sentry has answered and its job is checked
		go func() {           // answers within sentryWait and a round trip, or when stop ends
			var got *nats.Msg
			if err := s.pull.wait(stop, func(m *nats.Msg) { got = m }); err != nil && got == nil {
				pause(stop, retryPause) // the engine is away
			}
			s.answer <- got
		}()
	}
}

// await waits for the next event: a job, the end of a job, a slot, or the end of busy.
func (w *worker) await(stop context.Context, busy <-chan struct{}) {
	select {
	case <-stop.Done():
	case <-busy:
	case m := <-w.sentries[0].answer:
		w.answered(0, m)
	case m := <-w.sentries[1].answer:
		w.answered(1, m)
	case m := <-w.sentries[2].answer:
		w.answered(2, m)
	case m := <-w.sentries[3].answer:
		w.answered(3, m)
	case t := <-w.due:
		w.askAgain(t)
	case s := <-w.slots.arrived:
		w.slots.answered(s)
	case e := <-w.ended:
		w.over(e)
	}
	for len(w.ended) > 0 { // take all endings, so that one request gets jobs for all free slots
		w.over(<-w.ended)
	}
}

func (w *worker) answered(priority int, msg *nats.Msg) {
	s := &w.sentries[priority]
	s.out, s.held, s.since = false, msg, time.Now()
	if msg != nil {
		w.kept.add(msg)
	}
	if msg == nil || !redelivered(msg) {
		w.q.suspects.sure()
	}
}

// seen records that the job from a sentry has been handed on.
func (w *worker) seen(s *sentry) {
	if redelivered(s.held) {
		w.q.suspects.sure()
	}
	s.held = nil
}

// returnHeld gives back the sentries' jobs that may be suspects, while another suspect runs.
func (w *worker) returnHeld() {
	for i := range w.sentries {
		s := &w.sentries[i]
		if held := s.held; held != nil && redelivered(held) {
			s.held = nil
			lost := w.kept.release(held)
			w.q.stragglers.Go(func() {
				if !lost {
					w.q.giveBack(held)
				}
				w.q.suspects.sure()
			})
		}
	}
}

// over takes back the slot of a job, and lets a deferred task wait until it is due. The end of a
// job may make room for a task that the limiter refused.
func (w *worker) over(e ending) {
	w.running--
	w.slots.back(e.slot)
	t := e.task
	if t.after == 0 {
		if !t.away { // a job that the limiter refused leaves no room
			w.wake()
		}
		return
	}
	w.deferred[t] = time.AfterFunc(t.after, func() { w.due <- t })
	w.waiting.Add(1)
	if t.after = 0; t.limited {
		w.limited = append(w.limited, t)
	}
}

func (w *worker) wake() {
	for _, t := range w.limited {
		if w.deferred[t].Stop() { // otherwise the task is due already
			w.askAgain(t)
			return
		}
	}
}

func (w *worker) askAgain(t *task) {
	delete(w.deferred, t)
	w.waiting.Add(-1)
	if t.limited {
		w.limited = slices.DeleteFunc(w.limited, func(other *task) bool { return other == t })
		t.limited = false
	}
	w.again = append(w.again, t)
}

// begin starts the job in msg, unless the job has to wait. It returns the number started, 1 or 0.
func (w *worker) begin(msg *nats.Msg, taken time.Time) int {
	t := w.q.receive(msg, taken)
	if t == nil {
		w.kept.drop(msg)
		return 0
	}
	w.kept.add(msg)
	if t.deliveries > 1 {
		t.unsure = true
		w.q.suspects.lookOn()
	}
	w.launch(t)
	return 1
}

// launch runs a task in its own goroutine, with a slot.
func (w *worker) launch(t *task) {
	s := w.slots.use()
	w.running++
	w.started++
	go func() {
		defer func() { w.ended <- ending{s, t} }() // also after Goexit
		w.run(t)
	}()
}

// finish gives back requested jobs that were not started, and waits for the running jobs. Jobs that
// the engine still delivers are given back later, before Close returns.
func (w *worker) finish() {
	for t, timer := range w.deferred {
		timer.Stop()
		w.returnLater(t)
	}
	for _, t := range w.again {
		w.returnLater(t)
	}
	for i := range w.sentries {
		s := &w.sentries[i]
		lost := s.held != nil && w.kept.release(s.held)
		w.q.stragglers.Go(func() {
			if s.held != nil {
				if !lost {
					w.q.giveBack(s.held)
				}
				w.seen(s)
			}
			if s.out {
				if late := <-s.answer; late != nil {
					w.q.giveBack(late)
				}
				w.q.suspects.sure()
			}
			s.pull.end(s.pull.late)
		})
	}
	w.slots.end()
	for ; w.running > 0; w.running-- {
		e := <-w.ended
		e.slot.giveBack()
		if e.task.after > 0 {
			w.returnLater(e.task)
		}
	}
}

// returnLater gives a task back before Close returns.
func (w *worker) returnLater(t *task) {
	w.q.stragglers.Go(func() { w.giveBack(t) })
}
