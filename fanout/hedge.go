package fanout

import (
	"context"
	"errors"
	"time"
)

// errLost is the cause with which the slower of two attempts is cancelled.
var errLost = errors.New("fanout: the other attempt was faster")

// shedPause is how long hedging pauses after a refusal by a limiter.
const shedPause = time.Second

func (f *Fanout[Req, Res]) pauseHedging() {
	if f.hedged {
		f.shed.Store(int64(f.now() + shedPause))
	}
}

// armHedge schedules a second attempt of branch i and returns the context of the first. The frame
// is locked.
func (fr *frame[Req, Res]) armHedge(i int, ctx context.Context) context.Context {
	b, st := &fr.f.branches[i], &fr.states[i]
	delay := b.times.slow()
	if delay == 0 {
		return ctx
	}
	ctx, st.cancel[0] = context.WithCancelCause(ctx)
	fr.refs++ // for the timer
	st.timer = time.AfterFunc(delay, func() { fr.second(i) })
	return ctx
}

// second makes the second attempt of branch i, on the timer's goroutine.
func (fr *frame[Req, Res]) second(i int) {
	f := fr.f
	b, st := &f.branches[i], &fr.states[i]
	fr.mu.Lock()
	defer fr.leave() // also after runtime.Goexit
	st.timer = nil
	if st.settled || fr.closed || fr.fatal >= 0 {
		return
	}
	own := b.within - (f.now() - st.started)
	left := b.left(fr.ctx, own)
	if fr.ctx.Err() != nil || left == 0 || left < b.times.quick() {
		return
	}
	ctx, cancel := b.bounded(fr.ctx, left, own)
	if cancel != nil {
		defer cancel()
	}
	if int64(f.now()) < f.shed.Load() || !fr.admitted() {
		return
	}
	defer fr.dismiss()
	if !b.hedge.TryTake() {
		return
	}
	f.counts.hedges.Add(1)
	ctx, st.cancel[1] = context.WithCancelCause(ctx)
	st.running++
	fr.mu.Unlock()
	fr.slots[i].attempt(fr, i, ctx, f.now(), true)
}

// settleHedge cancels the timer and the other attempt of branch i once one attempt has settled the
// branch. The frame is locked.
func (fr *frame[Req, Res]) settleHedge(i int, err error) {
	b, st := &fr.f.branches[i], &fr.states[i]
	if b.hedge == nil {
		return
	}
	fr.disarmHedge(i)
	for _, cancel := range st.cancel {
		if cancel != nil {
			cancel(errLost)
		}
	}
	if err == nil {
		b.hedge.Success()
	}
}

// disarmHedge stops a second attempt that has not begun. The frame is locked.
func (fr *frame[Req, Res]) disarmHedge(i int) {
	if st := &fr.states[i]; st.timer != nil {
		if st.timer.Stop() {
			fr.refs--
		}
		st.timer = nil
	}
}
