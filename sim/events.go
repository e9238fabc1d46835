package sim

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// Event is one event between the callers and the policy.
type Event struct {
	At      time.Duration
	Kind    EventKind
	Attempt uint64 // number of the attempt, from 1
	Class   int    // index into Scenario.Classes
	// Deadline is the caller's deadline, when it leaves at the latest; negative: none.
	Deadline time.Duration
	Reason   spillway.Reason // with Refused
	Outcome  limit.Outcome   // with Ended
}

// EventKind is the kind of an Event.
type EventKind uint8

const (
	Arrived  EventKind = iota // the caller sent the call
	Waits                     // the policy let it wait
	Admitted                  // at once, or after it waited
	Refused                   // at once, or after it waited
	Left                      // the caller left while the call waited
	Ended                     // the work ended
)

// String returns the kind in one word.
func (k EventKind) String() string {
	return [...]string{"arrived", "waits", "admitted", "refused", "left", "ended"}[k]
}

func (r *run) event(c *call, k EventKind) {
	if r.sc.Record.Events {
		r.record(Event{Kind: k}, c)
	}
}

func (r *run) refusal(c *call, reason spillway.Reason) {
	if r.sc.Record.Events {
		r.record(Event{Kind: Refused, Reason: reason}, c)
	}
}

func (r *run) ending(c *call, o limit.Outcome) {
	if r.sc.Record.Events {
		r.record(Event{Kind: Ended, Outcome: o}, c)
	}
}

func (r *run) record(e Event, c *call) {
	e.At, e.Attempt, e.Class, e.Deadline = r.now, c.id, c.kind, -1
	if c.deadline != never {
		e.Deadline = c.deadline
	}
	r.report.Events = append(r.report.Events, e)
}
