package fanout

import (
	"context"
	"time"
)

// sequential runs the branches in the caller, each with the caller's context or a context with its
// own deadline. Nothing needs cancelling, since nothing is started after a failure.
func (fr *frame[Req, Res]) sequential(ctx context.Context, req Req, measured bool) (Result[Res], error) {
	f := fr.f
	var began, last, longest time.Duration
	if measured {
		began = f.now()
		last = began
	}
	var out Result[Res]
	var ended, fatal error // why nothing more is started; the call's error
	for i := range f.branches {
		b, err, callerEnded := &f.branches[i], ended, false
		if ended == nil {
			callerEnded, err = fr.inCaller(ctx, b, req)
		}
		if measured {
			now := f.now()
			if err == nil {
				b.times.add(now, now-last, f.learn.each())
			}
			last, longest = now, max(longest, now-last)
		}
		if err == nil {
			continue
		}
		out.Missing = append(out.Missing, BranchError{b.name, err})
		if b.required && fatal == nil {
			fatal = &BranchError{b.name, err}
			if !callerEnded && ended == nil {
				break
			}
		}
		if ended == nil {
			ended = ctx.Err()
		}
	}
	if ended == context.Canceled && out.Missing[len(out.Missing)-1].Err == ended {
		fatal = ended // the cancelled caller lacks an answer
	}
	if fatal == nil {
		out.Value = fr.res
		if measured {
			f.learned(false, last-began, last-began, longest)
		}
	}
	var zero Res
	fr.res = zero
	f.frames.Put(fr)
	return out, fatal
}

// inCaller runs branch b and merges its answer. If the branch's context has ended by then, neither
// answer nor error counts, as if the branch had run beside the caller. err is then the context's
// error, and callerEnded reports whether the caller's context has ended.
func (fr *frame[Req, Res]) inCaller(ctx context.Context, b *branch[Req, Res], req Req) (callerEnded bool, err error) {
	own, left := ctx, time.Duration(0)
	if b.within > 0 || b.lateness.watched() {
		var cancel context.CancelFunc
		if own, cancel, left, err = fr.bind(ctx, &b.spec); err != nil {
			return ctx.Err() != nil, err
		}
		if cancel != nil {
			defer cancel()
		}
	}
	ended, err := b.run(own, req, &fr.res)
	if ended == nil {
		if err == nil && left > 0 {
			b.lateness.inTime(fr.now(), left)
		}
		return false, err
	}
	if ended == context.DeadlineExceeded {
		b.lateness.late(fr.now(), left)
	}
	e := ending{err: err, over: ended}
	if e.compare(); !e.matches {
		fr.counts.late.Add(1)
		fr.reportLate(&b.spec, e.err, true)
	}
	return !endedAlone(own, ctx), ended
}

// endedAlone reports that a branch's context ended by its own deadline, and not by or with the
// caller's context.
func endedAlone(own, callers context.Context) bool {
	mine, _ := own.Deadline()
	theirs, some := callers.Deadline()
	return own.Err() == context.DeadlineExceeded && (!some || mine.Before(theirs))
}

// bind returns branch b's context, its cancel function, which may be nil, and the branch's
// remaining time; zero: not determined. The error says why the branch is not started.
func (p *plan) bind(ctx context.Context, b *spec) (context.Context, context.CancelFunc, time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, 0, err
	}
	if b.within == 0 && !b.lateness.watched() {
		return ctx, nil, 0, nil
	}
	left := b.left(ctx, b.within)
	if b.lateness.watched() && b.lateness.hopeless(p.now(), left) {
		return nil, nil, 0, tooLate
	}
	own, cancel := b.bounded(ctx, left, b.within)
	return own, cancel, left, nil
}

// left returns how much time branch b has under ctx, the context of its call. own is the time until
// the branch's own deadline.
func (b *spec) left(ctx context.Context, own time.Duration) time.Duration {
	left := forever
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	if b.within > 0 {
		left = min(left, own)
	}
	return max(0, left)
}

// bounded returns the context of an attempt with the remaining time left. own is the time until the
// branch's own deadline. The function may be nil.
func (b *spec) bounded(ctx context.Context, left, own time.Duration) (context.Context, context.CancelFunc) {
	if b.within == 0 || left < own {
		return ctx, nil
	}
	return context.WithTimeout(ctx, own)
}
