package fanout

import (
	"context"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limiter"
)

// frame is the state of one call. Branches beside the caller write to the frame under its lock and
// only while the call is open, so a late branch cannot change the caller's result. The frame is
// reused when its last user has left, unless a branch was late.
//
// A helper is a goroutine that runs branches. A helper works for the call that has the frame when
// the helper begins, or for no call. When other goroutines run all branches before a helper begins,
// the helper is already there for the next call, and costs that call nothing.
type frame[Req, Res any] struct {
	f      *Fanout[Req, Res]
	res    Res             // merged answers
	req    Req             // for the branches beside the caller
	parent context.Context // the caller's context
	weight int             // how many calls this measured call stands for; 0: the clock is not read
	began  time.Duration
	wake   chan struct{} // signals the caller to look at the frame
	help   func()        // frame.helper, bound once: a method value allocates
	timer  *time.Timer   // for branches that ignore their own deadlines

	mu      sync.Mutex
	ctx     *callContext
	slots   []slot[Req, Res]
	states  []state
	permits []limiter.Permit // the helpers' permits, in no order
	pending int              // helpers that have not begun
	others  bool             // an earlier call started some pending helpers, with the profile labels of its caller
	next    int              // the next branch to start
	open    int              // branches not settled yet
	refs    int              // users of the frame: the caller, helpers that have begun, timers of hedges
	fatal   int              // index of the required branch that failed first, or -1
	failure error            // error of the required branch that failed first
	cut     error            // error of the caller's context, once that context has ended the call
	busy    bool             // the caller runs branches itself
	goexit  bool
	closed  bool // no call is open: the caller has its result
	late    bool // a branch was still running when the call closed
}

type state struct {
	running int8 // attempts in progress
	settled bool
	late    bool // given up while running
	err     error
	failure error                      // error of the attempt that failed while the other was running
	took    time.Duration              // duration, once settled
	started time.Duration              // start, since the Fanout was made
	left    time.Duration              // remaining time at the start; zero: not determined, or counted as late
	cancel  [2]context.CancelCauseFunc // for the attempts of a hedged branch
	timer   *time.Timer                // starts the second attempt
}

func newFrame[Req, Res any](f *Fanout[Req, Res]) *frame[Req, Res] {
	fr := &frame[Req, Res]{f: f, wake: make(chan struct{}, 1), closed: true, states: make([]state, len(f.branches))}
	fr.help = fr.helper
	for i := range f.branches {
		fr.slots = append(fr.slots, f.branches[i].slot())
	}
	return fr
}

// recycle keeps the frame for another call. The frame is locked.
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

// parallel runs the branches on helpers. The caller runs branches too if joins is set.
func (fr *frame[Req, Res]) parallel(ctx context.Context, req Req, joins, measured bool) (Result[Res], error) {
	f := fr.f
	fr.mu.Lock()
	switch fr.weight = 0; {
	case f.within || f.hedged: // deadlines and hedges always need the times
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
		if !handedOver { // a branch called runtime.Goexit in the caller; the frame is locked
			fr.close(context.Canceled)
			fr.leave()
		}
	}()

	// Start as many helpers as processors can run at once. Before each branch, a helper starts
	// another helper if none is pending. So branches that wait all start at once, and branches that
	// compute do not pay for goroutines that would find no branch left.
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

// clock reads the clock only if the call is measured: two readings per branch cost a tenth of
// starting a branch.
func (fr *frame[Req, Res]) clock() time.Duration {
	if fr.weight > 0 {
		return fr.f.now()
	}
	return 0
}

// admitted takes a token and the limiter's permit, and reports success. The frame is locked.
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

// dismiss gives back the token and the permit of admitted. The frame is locked.
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

// depart ends a helper that has begun. The frame is locked, and depart unlocks it.
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

// leave gives up a reference and the lock. The last user recycles the frame, unless a branch was
// late.
func (fr *frame[Req, Res]) leave() {
	fr.refs--
	if fr.refs == 0 && !fr.late {
		fr.recycle()
	}
	fr.mu.Unlock()
}
