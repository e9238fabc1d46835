package fanout

import (
	"context"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limiter"
)

// frame is the state of one call. Branches that run beside the caller write to
// it under its lock and only while the call is open, so that a late one cannot
// touch what the caller got. It is reused when its last user has left, unless a
// branch was late.
//
// A helper is a goroutine that works for whatever call has the frame when it
// begins, or for none. One that has no chance to begin, because the others have
// done it all, so costs the next call nothing: it is there already.
type frame[Req, Res any] struct {
	f      *Fanout[Req, Res]
	res    Res             // what has been merged
	req    Req             // for the branches beside the caller
	parent context.Context // the caller's
	weight int             // of how many calls this one is measured; 0: the clock is not read
	began  time.Duration
	wake   chan struct{} // tells the caller to look
	help   func()        // frame.helper, made once: a method value allocates
	timer  *time.Timer   // for branches that ignore their own deadlines

	mu      sync.Mutex
	ctx     *callContext
	slots   []slot[Req, Res]
	states  []state
	permits []limiter.Permit // of the helpers, in no order
	pending int              // helpers that have not begun
	others  bool             // some of them were started by an earlier call, with the profile labels of its caller
	next    int              // the next branch to start
	open    int              // branches that have not ended
	refs    int              // users of the call: the caller, helpers that have begun, timers of hedges
	fatal   int              // the required branch that failed first, or -1
	failure error            // its
	cut     error            // that of the caller's context, once it has ended the call
	busy    bool             // the caller runs branches itself
	goexit  bool
	closed  bool // no call is going on: the caller has what it gets
	late    bool // and some branch was still running
}

type state struct {
	running int8 // attempts
	settled bool
	late    bool // given up while it ran
	err     error
	failure error                      // of the first of two attempts
	took    time.Duration              // once settled
	started time.Duration              // since the Fanout was made
	left    time.Duration              // how much time it had then; zero: nobody looked
	cancel  [2]context.CancelCauseFunc // of the attempts of a hedged branch
	timer   *time.Timer                // starts the second
}

func newFrame[Req, Res any](f *Fanout[Req, Res]) *frame[Req, Res] {
	fr := &frame[Req, Res]{f: f, wake: make(chan struct{}, 1), closed: true, states: make([]state, len(f.branches))}
	fr.help = fr.helper
	for i := range f.branches {
		fr.slots = append(fr.slots, f.branches[i].slot())
	}
	return fr
}

// recycle keeps the frame for another call. It is locked.
func (fr *frame[Req, Res]) recycle() {
	var noReq Req
	var noRes Res
	fr.req, fr.res, fr.parent, fr.failure = noReq, noRes, nil, nil
	if fr.f.cfg.BorrowedContext && fr.ctx.unused() {
		fr.ctx.parent = nil
		fr.ctx.state.Store(nil)
	} else {
		fr.ctx = nil
	}
	clear(fr.states)
	for _, s := range fr.slots {
		s.clear()
	}
	select {
	case <-fr.wake:
	default:
	}
	fr.f.frames.Put(fr)
}

// parallel runs the branches beside the caller, which takes part if joins is set.
func (fr *frame[Req, Res]) parallel(ctx context.Context, req Req, joins, measured bool) (Result[Res], error) {
	f := fr.f
	fr.mu.Lock()
	switch fr.weight = 0; {
	case f.within || f.hedged: // needs the times in any case
		fr.weight = 1
	case measured:
		fr.weight = f.learn.each()
	}
	fr.parent, fr.req, fr.began = ctx, req, fr.clock()
	if fr.ctx == nil {
		fr.ctx = new(callContext)
	}
	fr.ctx.parent = ctx
	fr.next, fr.open, fr.refs, fr.fatal = 0, len(f.branches), 1, -1
	fr.others = fr.pending > 0
	fr.cut, fr.busy, fr.goexit, fr.closed, fr.late = nil, false, false, false, false
	handedOver := false
	defer func() {
		if !handedOver { // runtime.Goexit in a branch that ran here; the frame is locked
			fr.close(context.Canceled)
			fr.leave()
		}
	}()

	// As many helpers at first as can run at once. Each starts another one before
	// a branch if none is on its way: branches that wait are all started, and those
	// that compute do not pay for goroutines that would find nothing left to do.
	want := min(len(f.branches), int(f.procs.Load()))
	for fr.pending < want && fr.admitted() {
		fr.pending++
		go fr.help()
	}
	if joins || fr.pending < want {
		fr.busy = true
		fr.work()
		fr.busy = false
	}
	fr.mu.Unlock()
	cause := fr.wait(ctx)
	fr.close(cause)
	handedOver = true
	return fr.outcome(measured)
}

// clock reads the clock, or not: two readings a branch are a tenth of what it
// costs to start one.
func (fr *frame[Req, Res]) clock() time.Duration {
	if fr.weight > 0 {
		return fr.f.now()
	}
	return 0
}

// admitted takes a token, and the limiter's permit. The frame is locked.
func (fr *frame[Req, Res]) admitted() bool {
	if !fr.f.budget.take() {
		return false
	}
	if lim := fr.f.cfg.Limiter; lim != nil {
		permit, err := lim.TryAcquire(fr.parent)
		if err != nil {
			fr.f.budget.give()
			fr.f.pauseHedging()
			return false
		}
		fr.permits = append(fr.permits, permit)
	}
	return true
}

// dismiss gives back what admitted took. The frame is locked.
func (fr *frame[Req, Res]) dismiss() {
	if n := len(fr.permits); n > 0 {
		fr.permits[n-1].Release()
		fr.permits = fr.permits[:n-1]
	}
	fr.f.budget.give()
}

func (fr *frame[Req, Res]) helper() {
	fr.mu.Lock()
	fr.pending--
	if fr.closed {
		fr.dismiss()
		fr.mu.Unlock()
		return
	}
	fr.refs++
	defer fr.depart() // also after runtime.Goexit
	if fr.others {
		pprof.SetGoroutineLabels(fr.parent)
	}
	fr.work()
}

// depart ends a helper that has begun. The frame is locked, and unlocked.
func (fr *frame[Req, Res]) depart() {
	fr.dismiss()
	fr.leave()
}

// work runs branches until none is left to start. The frame is locked, except
// while a branch runs.
func (fr *frame[Req, Res]) work() {
	for fr.next < len(fr.states) && fr.fatal < 0 && !fr.goexit && !fr.closed {
		i := fr.next
		fr.next++
		if fr.next < len(fr.states) && fr.pending == 0 && fr.admitted() {
			fr.pending++
			go fr.help()
		}
		fr.run(i)
	}
}

// run runs branch i. The frame is locked, except while the branch runs.
func (fr *frame[Req, Res]) run(i int) {
	b, st := &fr.f.branches[i], &fr.states[i]
	began := fr.clock()
	st.started = began
	ctx, cancel, left, err := fr.f.start(fr.ctx, b)
	if err != nil {
		fr.cut = fr.parent.Err()
		fr.decide(i, err, 0)
		return
	}
	st.left = left
	st.running++
	if b.hedge != nil {
		ctx = fr.armHedge(i, ctx)
	}
	fr.mu.Unlock()
	if cancel != nil {
		defer cancel()
	}
	fr.slots[i].attempt(fr, i, ctx, began, false)
}

func (fr *frame[Req, Res]) signal() {
	select {
	case fr.wake <- struct{}{}:
	default:
	}
}

// leave gives up a reference and the lock. The last one recycles the frame.
func (fr *frame[Req, Res]) leave() {
	fr.refs--
	if fr.refs == 0 && !fr.late {
		fr.recycle()
	}
	fr.mu.Unlock()
}
