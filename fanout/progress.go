package fanout

import (
	"context"
	"time"

	"github.com/spillway-go/spillway"
)

// A call that runs branches beside its caller, and each of its branches, is in one of these states:
//
//	idle ──begin──► open ─┬─ every branch is settled ──────► answered ─┐
//	 ▲                    ├─ a required branch has failed ─► failed ───┤
//	 │                    ├─ a branch called Goexit ───────► exited ───┤
//	 │                    └─ the caller's context has ended ───────────┤
//	 └─────────────────────────────close──────────────────────────────┘
//
//	waiting ──start──► running ─┬─ an attempt answers, or the last one fails ─► settled
//	 │                          ├─ the context of the branch ends first ──────► settled, late ─┐
//	 │                          └─ the call is closed first ──────────────────► late ──────────┤
//	 └─ not worth starting ─► settled                        the last attempt ends ─► ended ◄──┘
//
// While a hedged branch is settled by one attempt, the other attempt may still run. Such an attempt
// changes nothing in the call, and does not make the branch late.
//
// Three types share the work. A progress decides: events go in, decisions come out. A call owns the
// mutex and carries the decisions out. A frame runs the branches, without the mutex.

// phase is the state of a call.
type phase uint8

const (
	idle     phase = iota // there is no call: the last one has its result
	open                  // the caller waits
	answered              // every branch is settled
	failed                // a required branch has failed
	exited                // a branch called runtime.Goexit
)

// state is the state of one branch of a call.
type state struct {
	running  int8 // number of attempts in progress
	winner   int8 // the attempt that settled the branch: 0 or 1
	settled  bool
	late     bool  // given up while an attempt ran: when the context of the branch ended, or the call
	err      error // why there is no answer, once settled
	spare    error // error of the attempt that failed while the other was running
	started  time.Duration
	duration time.Duration // until the branch was settled
	left     time.Duration // remaining time at the start; zero: not determined, or miss has counted the branch
}

// progress is how far the branches of one call are. It reads no clock, takes no lock, and runs
// nothing.
type progress struct {
	branches   []*spec // the required ones first
	states     []state
	phase      phase
	nextBranch int   // index of the branch that starts next
	unsettled  int   // number of branches that are not settled
	busy       bool  // the caller runs branches itself
	failure    error // error of the required branch that failed first
	cut        error // error of the caller's context, once this context has ended the call
}

// ending is how an attempt ended.
type ending struct {
	attempt  int8  // 0, or 1 for the second attempt
	err      error // what the attempt returned
	rejected bool  // a limiter refused the attempt
	over     error // error of the attempt's context
	matches  bool  // err matches over
	own      bool  // the attempt's own deadline ended its context, not the caller's context
}

// verdict is what the end of an attempt means for its branch.
type verdict struct {
	effect effect
	missed bool  // the attempt's context ended before the attempt had answered
	err    error // error of the branch
}

type effect uint8

const (
	unheard effect = iota // none: the branch is settled, or the call is over
	spare                 // the other attempt may still succeed
	settles               // the attempt settles the branch
	overdue               // the context settles the branch, and nobody waits for the attempt
)

// judge returns what an attempt's end means for a branch in the state s. live: the call is open.
//
// When the attempt's context has ended, the caller gives the branch up. A caller that runs a branch
// or has not noticed the end yet cannot, so judge does. The result then does not depend on who
// noticed first.
func judge(e *ending, s *state, live, busy bool) verdict {
	err, missed := e.err, e.over != nil
	switch {
	case !live || s.settled:
		return verdict{}
	case err == nil && (e.over == nil || !busy):
		return verdict{effect: settles}
	case missed && !e.matches:
		return verdict{overdue, missed, e.over}
	case missed:
		err = e.over
	}
	switch {
	case s.running > 1:
		return verdict{spare, missed, err}
	case e.attempt > 0 && s.spare != nil:
		err = s.spare
	}
	return verdict{settles, missed, err}
}

func (p *progress) begin() {
	p.phase, p.nextBranch, p.unsettled, p.busy, p.failure, p.cut = open, 0, len(p.states), false, nil, nil
}

// end takes the end of an attempt of branch i. If the effect is settles or overdue, the caller of
// end then calls settle.
func (p *progress) end(i int, e *ending) verdict {
	s := &p.states[i]
	v := judge(e, s, p.phase == open, p.busy)
	if v.missed && !e.own {
		p.cut = e.over
	}
	switch v.effect {
	case spare:
		s.spare = v.err
	case settles:
		s.winner = e.attempt
	case overdue:
		s.late = true
	}
	s.running--
	return v
}

// unreported tells about an attempt that has just ended with err. report: reportLate has to report
// this end, because the branch is late, or because err is a panic and not the error of the branch.
// last: the branch is late, and no other attempt of the branch runs.
func (s *state) unreported(err error) (report, last bool) {
	_, panicked := err.(*spillway.PanicError)
	return s.late || panicked && s.err != err, s.late && s.running == 0
}

// settle settles branch i, whose error may be nil.
func (p *progress) settle(i int, err error, duration time.Duration) {
	s := &p.states[i]
	s.settled, s.err, s.duration = true, err, duration
	p.unsettled--
	switch {
	case p.phase != open:
	case err != nil && p.branches[i].required:
		p.phase, p.failure = failed, &BranchError{p.branches[i].name, err}
	case p.unsettled == 0:
		p.phase = answered
	}
}

// exit takes the end of an attempt of branch i that called runtime.Goexit. last: the attempt was the
// last of a late branch.
func (p *progress) exit(i int) (last bool) {
	s := &p.states[i]
	s.running--
	if p.phase != idle {
		p.phase = exited
	}
	return s.late && s.running == 0
}

// remaining returns how much of its own time branch i has.
func (p *progress) remaining(i int, now time.Duration) time.Duration {
	if i >= p.nextBranch {
		return p.branches[i].within
	}
	return p.branches[i].within - (now - p.states[i].started)
}

// outcome lists the branches without an answer and returns the call's error. When the caller's
// context ends, the outcome does not depend on whether a branch or the caller noticed first.
func (p *progress) outcome() (missing []BranchError, err error) {
	required := false // the first missing branch is required
	for i := range p.states {
		s, b, why := &p.states[i], p.branches[i], p.cut
		switch {
		case s.settled && s.err == nil:
			continue
		case s.settled:
			why = s.err
		case why == nil: // cancelled because a required branch failed: not reported
			continue
		}
		required = required || missing == nil && b.required
		missing = append(missing, BranchError{b.name, why})
	}
	switch {
	case missing == nil:
		return nil, nil
	case p.cut == context.Canceled:
		return missing, p.cut
	case p.cut == nil && p.failure != nil:
		return missing, p.failure
	case required:
		return missing, &BranchError{missing[0].Branch, missing[0].Err}
	}
	return missing, nil
}

// durations returns the sum of the branches' durations, up to now for those that run, and the
// longest of them.
func (p *progress) durations(now time.Duration) (sum, longest time.Duration) {
	for i := range p.states {
		s := &p.states[i]
		d := s.duration
		if !s.settled && s.running > 0 {
			d = now - s.started
		}
		sum, longest = sum+d, max(longest, d)
	}
	return sum, longest
}
