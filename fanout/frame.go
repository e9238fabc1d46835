package fanout

import (
	"context"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// frame is a call, and what depends on its types. Only the caller merges, and each attempt writes to
// its own place in a slot, so a late attempt cannot change the caller's result.
type frame[Req, Res any] struct {
	call
	f     *Fanout[Req, Res]
	slots []slot[Req, Res]
	req   Req  // the caller's request
	res   Res  // the merged answers, until the caller has taken them
	used  bool // never to be used again
}

// frame returns a frame for a parallel call. A frame that was used in a bubble of testing/synctest is not used
// again: the frame's channel, its timer and its pending helpers belong to the bubble.
func (f *Fanout[Req, Res]) frame() *frame[Req, Res] {
	if clock.Virtual(time.Now()) {
		fr := newFrame(f)
		fr.used = true
		return fr
	}
	return f.frames.Get().(*frame[Req, Res])
}

func newFrame[Req, Res any](f *Fanout[Req, Res]) *frame[Req, Res] {
	n := len(f.branches)
	fr := &frame[Req, Res]{f: f, call: call{plan: &f.plan, hedges: make([]hedge, n)}}
	fr.progress = progress{branches: f.specs, states: make([]state, n)}
	fr.help, fr.again = fr.helper, fr.second // bound once: a method value allocates
	for i := range f.branches {
		fr.slots = append(fr.slots, f.branches[i].slot())
	}
	return fr
}

// parallel runs the branches on helpers. The caller runs branches too if joins is set.
func (fr *frame[Req, Res]) parallel(ctx context.Context, req Req, joins, measured bool) (res Result[Res], err error) {
	if fr.wake == nil {
		fr.wake = make(chan struct{}, 1)
	}
	fr.req = req
	w := worker{caller: true}
	defer fr.leave(&w)
	fr.work(&w, fr.begin(&w, ctx, joins, measured))
	var out outcome
	fr.wait(&out)
	if out.exited {
		runtime.Goexit()
	}
	into := &fr.res
	if out.err != nil {
		into = nil
	}
	// A late branch may keep the frame for long, so the frame must not keep the answers. After close,
	// no goroutine writes to the fields that are read here.
	for i := range fr.states {
		if s := &fr.states[i]; s.settled && s.err == nil {
			fr.slots[i].take(s.winner, into)
		}
	}
	var none Res
	res.Value, fr.res = fr.res, none
	res.Missing = out.missing
	return res, out.err
}

func (fr *frame[Req, Res]) helper() {
	var w worker
	defer fr.leave(&w)
	fr.work(&w, fr.arrive(&w))
}

// second makes the second attempt of branch i, on the timer's goroutine.
func (fr *frame[Req, Res]) second(i int) {
	w := worker{ending: ending{attempt: 1}}
	defer fr.leave(&w)
	fr.work(&w, fr.hedge(&w, i))
}

// work runs the attempts of w, of which the first has been started or none.
func (fr *frame[Req, Res]) work(w *worker, started bool) {
	for started {
		fr.run(w)
		started = fr.next(w)
	}
}

// run makes w's attempt.
func (fr *frame[Req, Res]) run(w *worker) {
	returned := false
	defer func() {
		if !returned {
			fr.exit(w)
		}
		if w.cancel != nil {
			w.cancel()
		}
	}()
	fr.finish(w, fr.slots[w.branch].run(w.ctx, fr.req, w.attempt))
	returned = true
}

// leave ends w, also after runtime.Goexit. The last user recycles the frame.
func (fr *frame[Req, Res]) leave(w *worker) {
	if fr.call.leave(w) {
		fr.recycle()
	}
}

// recycle keeps the frame, which nobody uses, for another call.
func (fr *frame[Req, Res]) recycle() {
	if fr.used {
		return
	}
	var noReq Req
	var noRes Res
	fr.req, fr.res, fr.parent, fr.failure, fr.cut = noReq, noRes, nil, nil, nil
	fr.ctx = nil // a branch may keep it
	clear(fr.states)
	clear(fr.hedges)
	for _, s := range fr.slots {
		s.clear()
	}
	select {
	case <-fr.wake:
	default:
	}
	fr.f.frames.Put(fr)
}
