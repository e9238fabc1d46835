package fanout

import (
	"time"

	"github.com/spillway-go/spillway"
)

// settle records the end of an attempt, which ran from began to now, and reports whether its answer
// counts. The frame is locked.
func (fr *frame[Req, Res]) settle(i int, e *ending, began, now time.Duration, second bool) bool {
	b, st, err := &fr.f.branches[i], &fr.states[i], e.err
	// When the context has ended, the caller gives this branch up. A caller that runs a branch or
	// has not noticed the end yet cannot, so settle does. The result then does not depend on who
	// noticed first.
	if (err != nil || fr.busy) && !st.settled && !fr.closed && fr.fatal < 0 {
		if end := e.over; end != nil {
			if !e.alone {
				fr.cut = end
			}
			if e.heard {
				err = end
				fr.overdue(i, end)
			} else {
				fr.giveUp(i, end)
				fr.decide(i, end, now-st.started)
			}
		}
	}
	st.running--
	if st.settled || fr.closed || fr.fatal >= 0 {
		fr.afterwards(i, err, began, now)
		return false
	}
	if err != nil && st.running > 0 { // the other attempt may still succeed
		if st.failure == nil || !second {
			st.failure = err
		}
		return false
	}
	if err != nil && second && st.failure != nil {
		err = st.failure
	}
	if err == nil && fr.weight > 0 {
		b.times.add(now, now-began, fr.weight)
	}
	if err == nil && st.left > 0 {
		b.lateness.made(fr.f.now(), st.left)
	}
	fr.settleHedge(i, err)
	fr.decide(i, err, now-st.started)
	return err == nil
}

// decide settles branch i with its error. The frame is locked.
func (fr *frame[Req, Res]) decide(i int, err error, took time.Duration) {
	st := &fr.states[i]
	st.settled, st.err, st.took = true, err, took
	fr.open--
	if err != nil && i < fr.f.required && fr.fatal < 0 {
		fr.fatal, fr.failure = i, &BranchError{fr.f.branches[i].name, err}
		fr.ctx.end(fr.failure)
	}
	if fr.open == 0 || fr.fatal >= 0 {
		fr.signal()
	}
}

// afterwards accounts for an attempt that no caller waited for. The frame is
// locked.
func (fr *frame[Req, Res]) afterwards(i int, err error, began, now time.Duration) {
	b, st := &fr.f.branches[i], &fr.states[i]
	if st.settled && st.err == nil { // this attempt lost to the other attempt
		b.times.add(now, now-began, fr.weight) // a lower bound: this attempt was cancelled
	}
	_, panicked := err.(*spillway.PanicError)
	if !st.late && !panicked {
		return
	}
	ended := st.late && st.running == 0
	fr.mu.Unlock()
	defer fr.mu.Lock()
	fr.f.tellLate(b, err, ended)
}

// vanished records the end of an attempt that called runtime.Goexit. The goroutine then only runs
// deferred functions, which expect the frame locked, as it is now.
func (fr *frame[Req, Res]) vanished(i int) {
	st := &fr.states[i]
	st.running--
	if st.late && st.running == 0 {
		fr.f.counts.lateDone.Add(1)
	}
	fr.goexit = true
	fr.signal()
}
