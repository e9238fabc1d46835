package fanout

import (
	"context"
	"errors"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limiter"
)

// call is the state of a call that runs branches beside its caller. The methods in the first part
// of this file lock the call, and only they call those in the second part. A call is used again when
// its last user has departed, unless the call was outlived by an attempt.
type call struct {
	*plan
	wake  chan struct{} // signals the caller to look at the call
	help  func()        // runs a helper
	again func(i int)   // runs the second attempt of branch i
	timer *time.Timer   // of the caller, for branches that ignore their own deadlines

	// What begin sets stays as it is until the last user has left.
	parent   context.Context // the caller's context
	ctx      *callContext
	measured bool
	weight   int // how many calls this measured call stands for; 0: the clock is not read
	began    time.Duration

	mu sync.Mutex
	progress
	hedges    []hedge
	permits   []limiter.Permit // the helpers' permits, in no order
	pending   int              // helpers that have not begun
	inherited bool             // some helpers were pending at begin: they have the profile labels of an earlier caller
	users     int              // number of goroutines that use the call: the caller, helpers that have begun, timers of hedges
	outlived  bool             // an attempt was running when the call closed: this call is never used again
}

// hedge is what a branch needs for a second attempt.
type hedge struct {
	timer  *time.Timer                // starts the second attempt
	cancel [2]context.CancelCauseFunc // cancel the attempts
}

// outcome is the result of a call, except its value.
type outcome struct {
	missing []BranchError
	err     error
	exited  bool // a branch called runtime.Goexit
}

// begin begins a call and starts helpers. The caller runs branches too if joins is set, or if too few
// helpers were admitted. begin then gives the first attempt to w, the caller, and returns true.
func (c *call) begin(w *worker, ctx context.Context, joins, measured bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.weight = 0; {
	case c.within || c.hedged: // deadlines and hedges always need the times
		c.weight = 1
	case measured:
		c.weight = c.learn.each()
	}
	c.parent, c.measured, c.began = ctx, measured, c.clock()
	c.ctx = &callContext{parent: ctx}
	c.progress.begin()
	c.users, c.outlived, c.inherited = 1, false, c.pending > 0

	// Start as many helpers as processors can run at once. Before each branch, a helper starts
	// another helper if none is pending. So branches that wait all start at once, and branches that
	// compute do not pay for goroutines that would find no branch left.
	want := min(len(c.states), int(c.procs.Load()))
	for c.pending < want && c.admit() {
		c.startHelper()
	}
	c.busy = joins || c.pending < want
	return c.busy && c.start(w)
}

// arrive takes a helper that has begun. It gives the helper its first attempt, or returns false: the
// helper has then departed.
func (c *call) arrive(w *worker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending--
	if c.phase == idle {
		c.dismiss()
		w.departed = true
		return false
	}
	c.users++
	w.token = true
	if c.inherited {
		pprof.SetGoroutineLabels(c.parent)
	}
	return c.start(w)
}

// step takes the end of w's attempt, if w made one. Unless the end is to be reported, step starts
// w's next attempt. The caller of step reports without the lock, and then calls step again.
func (c *call) step(w *worker) (report, last, started bool) {
	c.mu.Lock()
	if w.running {
		w.running = false
		report, last = c.end(w)
	}
	if !report {
		started = c.start(w)
	}
	c.mu.Unlock()
	return report, last, started
}

// hedge gives the second attempt of branch i to w, or returns false.
func (c *call) hedge(w *worker, i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, b, now := &c.hedges[i], c.branches[i], c.now()
	h.timer = nil
	own := c.remaining(i, now)
	left := b.left(c.ctx, own)
	switch {
	case c.phase != open || c.states[i].settled || c.ctx.Err() != nil:
		return false
	case left == 0 || left < b.times.quick(): // too little time
		return false
	case int64(now) < c.hedgeAfter.Load() || !c.admit():
		return false
	}
	w.token = true
	if !b.hedge.TryTake() {
		return false
	}
	c.counts.hedges.Add(1)
	ctx, cancel := b.bounded(c.ctx, left, own)
	ctx, h.cancel[1] = context.WithCancelCause(ctx)
	c.attempt(w, i, ctx, cancel, now)
	return true
}

// exit takes the end of an attempt that called runtime.Goexit.
func (c *call) exit(w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.progress.exit(w.branch); last {
		c.counts.lateEnded.Add(1)
	}
	signal(c.wake)
}

// check closes the call if the call is over, with its result in out. Otherwise next is a lower bound
// of the time until a branch's own deadline passes; zero: no unsettled branch has its own deadline.
func (c *call) check(out *outcome) (over bool, next time.Duration) {
	c.mu.Lock()
	if c.within {
		next = c.expire()
	}
	over = c.phase != open
	if !over {
		c.cut = c.parent.Err()
		over = c.cut != nil
	}
	if over {
		c.close(out)
	}
	c.mu.Unlock()
	return over, next
}

// leave lets w depart, unless w has departed, and reports whether w was the last user of a call that
// can be used again. A caller that leaves an open call has called runtime.Goexit or panics.
func (c *call) leave(w *worker) bool {
	if w.departed {
		return w.last
	}
	c.mu.Lock()
	if w.caller && c.phase != idle {
		c.phase = exited
		c.close(new(outcome))
	}
	c.depart(w)
	c.mu.Unlock()
	return w.last
}

// The call is locked in all methods below.

// admit takes a token and the limiter's permit, and reports success.
func (c *call) admit() bool {
	if !c.bulkhead.take() {
		return false
	}
	if lim := c.cfg.Limiter; lim != nil {
		permit, err := lim.TryAcquire(c.parent)
		if err != nil {
			c.bulkhead.give()
			c.pauseHedging()
			return false
		}
		c.permits = append(c.permits, permit)
	}
	return true
}

// dismiss gives back the token and the permit of admit.
func (c *call) dismiss() {
	if n := len(c.permits); n > 0 {
		c.permits[n-1].Release()
		c.permits = c.permits[:n-1]
	}
	c.bulkhead.give()
}

// startHelper starts a helper that was admitted. A helper works for the call that is open when the
// helper begins, or for no call. When other goroutines run all branches before a helper begins, the
// helper is already there for the next call, and costs that call nothing.
func (c *call) startHelper() {
	c.pending++
	go c.help()
}

// depart ends w as a user of the call.
func (c *call) depart(w *worker) {
	if w.token {
		c.dismiss()
	}
	c.users--
	w.departed, w.last = true, c.users == 0 && !c.outlived
}

// start starts the next branch for w. If there is none, w departs, except the caller.
func (c *call) start(w *worker) bool {
	for w.attempt == 0 && c.phase == open && c.nextBranch < len(c.states) {
		i := c.nextBranch
		c.nextBranch++
		if c.nextBranch < len(c.states) && c.pending == 0 && c.admit() {
			c.startHelper()
		}
		b, s := c.branches[i], &c.states[i]
		s.started = c.clock()
		ctx, cancel, left, err := c.bind(c.ctx, b)
		if err != nil {
			c.cut = c.parent.Err()
			c.settle(i, err, 0)
			continue
		}
		s.left = left
		if b.hedge != nil {
			ctx = c.arm(i, ctx)
		}
		c.attempt(w, i, ctx, cancel, s.started)
		return true
	}
	if w.caller {
		c.busy = false
	} else {
		c.depart(w)
	}
	return false
}

// attempt gives an attempt of branch i to w.
func (c *call) attempt(w *worker, i int, ctx context.Context, cancel context.CancelFunc, began time.Duration) {
	c.states[i].running++
	w.running, w.branch, w.ctx, w.cancel, w.began = true, i, ctx, cancel, began
}

// end carries out what the end of w's attempt means. The results are those of unreported.
func (c *call) end(w *worker) (report, last bool) {
	i := w.branch
	b, s := c.branches[i], &c.states[i]
	v := c.progress.end(i, &w.ending)
	if v.missed {
		c.miss(i, w.over)
	}
	switch v.effect {
	case settles:
		if v.err == nil && c.weight > 0 {
			b.times.add(w.ended, w.ended-w.began, c.weight)
		}
		if v.err == nil && s.left > 0 {
			b.lateness.inTime(c.now(), s.left)
		}
		c.endHedge(i, v.err)
		c.settle(i, v.err, w.ended-s.started)
	case overdue:
		c.counts.late.Add(1)
		c.disarm(i)
		c.settle(i, v.err, w.ended-s.started)
	case unheard:
		if s.settled && s.err == nil { // the other attempt won
			b.times.add(w.ended, w.ended-w.began, c.weight) // a lower bound, because this attempt was cancelled
		}
	}
	return s.unreported(w.err)
}

// settle settles branch i, and cancels the call's branches if the call has thereby failed.
func (c *call) settle(i int, err error, duration time.Duration) {
	c.progress.settle(i, err, duration)
	if c.phase == failed {
		c.ctx.end(c.failure)
	}
	if c.phase != open {
		signal(c.wake)
	}
}

// expire gives up the branches whose own deadline has passed. It returns a lower bound of the time
// until the next such deadline, because branches not yet started may start at any moment.
func (c *call) expire() (next time.Duration) {
	now := c.now()
	for i, b := range c.branches {
		if c.states[i].settled || b.within == 0 {
			continue
		}
		if left := c.remaining(i, now); left <= 0 {
			c.giveUp(i, context.DeadlineExceeded)
			c.settle(i, context.DeadlineExceeded, b.within-left)
		} else if next == 0 || left < next {
			next = left
		}
	}
	return next
}

// giveUp marks branch i as late if the branch is running; why is the reason.
func (c *call) giveUp(i int, why error) {
	if s := &c.states[i]; s.running > 0 {
		s.late = true
		c.counts.late.Add(1)
		c.miss(i, why)
	}
	c.disarm(i)
}

// miss records that branch i had not answered when its context ended with the error end. A
// cancelled branch is not late.
func (c *call) miss(i int, end error) {
	if s := &c.states[i]; end == context.DeadlineExceeded {
		c.branches[i].lateness.late(c.now(), s.left)
		s.left = 0 // count the branch once
	}
}

// arm schedules a second attempt of branch i and returns the context of the first.
func (c *call) arm(i int, ctx context.Context) context.Context {
	h, delay := &c.hedges[i], c.branches[i].times.slow()
	if delay == 0 {
		return ctx
	}
	ctx, h.cancel[0] = context.WithCancelCause(ctx)
	c.users++ // the timer
	h.timer = time.AfterFunc(delay, func() { c.again(i) })
	return ctx
}

// disarm stops a second attempt that has not begun.
func (c *call) disarm(i int) {
	if h := &c.hedges[i]; h.timer != nil {
		if h.timer.Stop() {
			c.users--
		}
		h.timer = nil
	}
}

// errLost is the cause with which the slower of two attempts is cancelled.
var errLost = errors.New("fanout: the other attempt was faster")

// endHedge cancels the timer and the other attempt of branch i once an attempt has settled the
// branch.
func (c *call) endHedge(i int, err error) {
	b := c.branches[i]
	if b.hedge == nil {
		return
	}
	c.disarm(i)
	for _, cancel := range c.hedges[i].cancel {
		if cancel != nil {
			cancel(errLost)
		}
	}
	if err == nil {
		b.hedge.Success()
	}
}

// close ends the call, with its result in out. From now on no attempt changes the result.
func (c *call) close(out *outcome) {
	if out.exited = c.phase == exited; !out.exited {
		out.missing, out.err = c.outcome()
		if out.err == nil && c.measured {
			now := c.now()
			sum, longest := c.durations(now)
			c.learned(true, now-c.began, sum, longest)
		}
	}
	c.phase = idle
	if c.timer != nil {
		c.timer.Stop()
	}
	for i := range c.states {
		if !c.states[i].settled {
			c.giveUp(i, c.cut)
		}
		c.outlived = c.outlived || c.states[i].running > 0
	}
	cause := context.Canceled
	if c.cut != nil {
		cause = context.Cause(c.parent)
	}
	c.ctx.end(cause)
}
