package fanout

import (
	"context"
	"runtime"
	"time"
)

// wait waits until the call is over and returns the cancellation cause for branches that still run.
// It returns with the frame locked.
func (fr *frame[Req, Res]) wait(ctx context.Context) (cause error) {
	var timeout <-chan time.Time
	for {
		fr.mu.Lock()
		var next time.Duration
		if fr.f.within {
			next = fr.expire()
		}
		switch {
		case fr.fatal >= 0:
			return nil // the branches are already cancelled
		case fr.goexit || fr.open == 0:
			return context.Canceled
		}
		if fr.cut = ctx.Err(); fr.cut != nil {
			return context.Cause(ctx)
		}
		if next > 0 {
			timeout = fr.alarm(next)
		}
		fr.mu.Unlock()
		select {
		case <-fr.wake:
		case <-ctx.Done():
		case <-timeout:
		}
	}
}

func (fr *frame[Req, Res]) alarm(d time.Duration) <-chan time.Time {
	if fr.timer == nil {
		fr.timer = time.NewTimer(d)
	} else {
		fr.timer.Reset(d)
	}
	return fr.timer.C
}

// expire gives up the branches whose own deadline has passed. It returns a lower bound of the time
// until the next such deadline, because branches not yet started may start at any moment. The frame
// is locked.
func (fr *frame[Req, Res]) expire() (next time.Duration) {
	now := fr.f.now()
	for i := range fr.states {
		b, st := &fr.f.branches[i], &fr.states[i]
		if st.settled || b.within == 0 {
			continue
		}
		passed := time.Duration(0)
		if i < fr.next {
			passed = now - st.started
		}
		if left := b.within - passed; left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		fr.giveUp(i, context.DeadlineExceeded)
		fr.decide(i, context.DeadlineExceeded, passed)
	}
	return next
}

// giveUp marks branch i as late if the branch is running; why is the reason. The frame is locked.
func (fr *frame[Req, Res]) giveUp(i int, why error) {
	st := &fr.states[i]
	if st.running > 0 {
		st.late = true
		fr.f.counts.late.Add(1)
		fr.overdue(i, why)
	}
	fr.disarmHedge(i)
}

// overdue records that branch i had not answered when its context ended with the error end. A
// cancelled branch is not late. The frame is locked.
func (fr *frame[Req, Res]) overdue(i int, end error) {
	if st := &fr.states[i]; end == context.DeadlineExceeded {
		fr.f.branches[i].lateness.late(fr.f.now(), st.left)
		st.left = 0 // count the branch once
	}
}

// close ends the call: from now on no branch writes to the frame. The frame is
// locked.
func (fr *frame[Req, Res]) close(cause error) {
	fr.closed = true
	if fr.timer != nil {
		fr.timer.Stop()
	}
	for i := range fr.states {
		if st := &fr.states[i]; !st.settled {
			fr.giveUp(i, fr.cut)
		}
		fr.late = fr.late || fr.states[i].running > 0
	}
	if cause != nil {
		fr.ctx.end(cause)
	}
}

// outcome determines the call's error, merges the answers and leaves the frame. The frame is locked
// and closed.
func (fr *frame[Req, Res]) outcome(measured bool) (out Result[Res], err error) {
	if fr.goexit {
		fr.leave()
		runtime.Goexit()
	}
	out.Missing, err = fr.missing()
	if err == nil && measured {
		fr.learn()
	}
	fr.mu.Unlock() // no branch writes any more, and merge is user code
	if err == nil {
		for i := range fr.states {
			if st := &fr.states[i]; st.settled && st.err == nil {
				fr.slots[i].merge(&fr.res)
			}
		}
		out.Value = fr.res
	}
	fr.mu.Lock()
	fr.leave()
	return out, err
}

// missing lists the branches without an answer and returns the call's error. When the caller's
// context ends, the result does not depend on whether a branch or the caller noticed first. The
// frame is locked.
func (fr *frame[Req, Res]) missing() (missing []BranchError, err error) {
	first := -1 // first required branch without an answer
	for i := range fr.states {
		st, why := &fr.states[i], fr.cut
		switch {
		case st.settled && st.err == nil:
			continue
		case st.settled:
			why = st.err
		case why == nil: // cancelled because of the fatal branch: not reported
			continue
		}
		missing = append(missing, BranchError{fr.f.branches[i].name, why})
		if i < fr.f.required && first < 0 {
			first = i
		}
	}
	switch {
	case missing == nil:
		return nil, nil
	case fr.cut == context.Canceled:
		return missing, fr.cut
	case fr.cut == nil && fr.fatal >= 0:
		return missing, fr.failure
	case first >= 0:
		return missing, &BranchError{fr.f.branches[first].name, missing[0].Err}
	}
	return missing, nil
}

// learn records a successful call in the learner. The frame is locked.
func (fr *frame[Req, Res]) learn() {
	now := fr.f.now()
	var sum, longest time.Duration
	for i := range fr.states {
		st := &fr.states[i]
		took := st.took
		if !st.settled && st.running > 0 {
			took = now - st.started // so far
		}
		sum, longest = sum+took, max(longest, took)
	}
	fr.f.learned(true, now-fr.began, sum, longest)
}
