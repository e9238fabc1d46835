package fanout

import (
	"context"
	"time"
)

// sequential runs the branches in the caller, each with the caller's context or
// one with its own deadline: there is nothing to cancel, since nothing is started
// after a failure.
func (fr *frame[Req, Res]) sequential(ctx context.Context, req Req, measured bool) (Result[Res], error) {
	f := fr.f
	var began, last, longest time.Duration
	if measured {
		began = f.now()
		last = began
	}
	var out Result[Res]
	var fatal error
	for i := range f.branches {
		b := &f.branches[i]
		own, cancel, err := ctx, context.CancelFunc(nil), ctx.Err()
		if err == nil && (b.within > 0 || b.times.quick() >= judgeable) {
			own, cancel, err = f.bounded(ctx, b, b.within)
		}
		if err == nil {
			err = b.run(own, req, &fr.res)
		}
		if cancel != nil {
			cancel()
		}
		if measured {
			now := f.now()
			if err == nil {
				b.times.add(now - last)
			}
			last, longest = now, max(longest, now-last)
		}
		if err == nil {
			continue
		}
		out.Missing = append(out.Missing, BranchError{b.name, err})
		if ctx.Err() == context.Canceled {
			fatal = context.Canceled
			break
		}
		if b.required {
			fatal = &BranchError{b.name, err}
			break
		}
	}
	if fatal == nil {
		out.Value = fr.res
		if measured && f.cfg.Mode == Auto {
			f.learn.learn(false, last-began, last-began, longest)
		}
	}
	var zero Res
	fr.res = zero
	f.frames.Put(fr)
	return out, fatal
}

// bounded returns the context for branch b, which has this much left of the time
// that it may take, or why it is not started. The function may be nil.
func (f *Fanout[Req, Res]) bounded(ctx context.Context, b *branch[Req, Res], own time.Duration) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if b.within == 0 && b.times.quick() < judgeable {
		return ctx, nil, nil
	}
	left := time.Duration(-1)
	if deadline, ok := ctx.Deadline(); ok {
		left = max(0, time.Until(deadline))
	}
	if b.within > 0 && (left < 0 || own < left) {
		if own <= 0 {
			return nil, nil, context.DeadlineExceeded
		}
		left = own
	}
	if left >= 0 && b.tooLate(left) {
		return nil, nil, tooLate
	}
	if b.within == 0 {
		return ctx, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, own)
	return ctx, cancel, nil
}
