package sim

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// callEvent is one event between the callers and the policy.
type callEvent struct {
	At      time.Duration
	Kind    callEventKind
	Attempt uint64 // number of the attempt, from 1
	Class   int    // index into Scenario.Classes
	// Deadline is the caller's deadline, when it leaves at the latest; negative: none.
	Deadline time.Duration
	Reason   spillway.Reason // with callRefused
	Outcome  limit.Outcome   // with callEnded
}

// callEventKind is the kind of a callEvent.
type callEventKind uint8

const (
	callArrived  callEventKind = iota // the caller sent the call
	callWaits                         // the policy let it wait
	callAdmitted                      // at once, or after it waited
	callRefused                       // at once, or after it waited
	callLeft                          // the caller left while the call waited
	callEnded                         // the work ended
)

// String returns the kind in one word.
func (k callEventKind) String() string {
	return [...]string{"arrived", "waits", "admitted", "refused", "left", "ended"}[k]
}

func (r *run) event(c *call, k callEventKind) {
	if r.sc.Record.events {
		r.record(callEvent{Kind: k}, c)
	}
}

func (r *run) refusal(c *call, reason spillway.Reason) {
	if r.sc.Record.events {
		r.record(callEvent{Kind: callRefused, Reason: reason}, c)
	}
}

func (r *run) ending(c *call, o limit.Outcome) {
	if r.sc.Record.events {
		r.record(callEvent{Kind: callEnded, Outcome: o}, c)
	}
}

func (r *run) record(e callEvent, c *call) {
	e.At, e.Attempt, e.Class, e.Deadline = r.now, c.id, c.kind, -1
	if c.deadline != never {
		e.Deadline = c.deadline
	}
	r.report.events = append(r.report.events, e)
}
