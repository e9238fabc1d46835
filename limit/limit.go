// Package limit holds control laws: they look at work as it starts and as it
// ends, and say how much may run at once. A law is a pure state machine. It has
// no clock, no lock and no goroutine, so the same value runs inside the live
// limiter, in tests on virtual time and in the simulator.
package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway"
)

// Outcome says what a finished piece of work tells a law. Outcomes may be added: to
// a law one that it does not know is as Unknown.
type Outcome uint8

const (
	Success  Outcome = iota // finished: its duration is a latency sample
	Deadline                // ended by its deadline: it would have taken at least this long, and its work is lost
	Canceled                // its caller left: it would have taken at least this long. A sign of overload only if it was slow by then
	Overload                // refused further below: a sign of overload, its duration means nothing
	Failed                  // failed for its own reasons: says nothing about load
	Unknown                 // ended without saying how: says nothing
)

// String returns the outcome in snake case, as metrics label it.
func (o Outcome) String() string {
	switch o {
	case Success:
		return "success"
	case Deadline:
		return "deadline"
	case Canceled:
		return "canceled"
	case Overload:
		return "overload"
	case Failed:
		return "failed"
	case Unknown:
		return "unknown"
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// OutcomeOf says what an error tells a law about the work that it ended. A
// rejection from below counts as that even if it also matches a context's error,
// and a deadline goes before a cancellation.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Success
	}
	return outcomeOf(err)
}

// outcomeOf asks an error what it is. An error whose methods panic, such as a nil pointer in the
// interface, is a failure like others: permits are given back on goroutines that nothing guards.
func outcomeOf(err error) (what Outcome) {
	defer func() {
		if recover() != nil {
			what = Failed
		}
	}()
	switch {
	case errors.Is(err, spillway.ErrRejected):
		return Overload
	case errors.Is(err, context.DeadlineExceeded):
		return Deadline
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Failed
}

// Sample is one finished piece of work. Times count from the start of the
// limiter.
type Sample struct {
	Seq        uint64        // its number among the admitted, from 1: the Seq-th call of Admit
	Start, End time.Duration // when it was admitted and when it ended
	Outcome    Outcome
	Class      uint8 // below Classes; work of one class is compared with its own kind only
}

// Classes is how many classes of work a law tells apart.
const Classes = 24

// Load is the state of the owner right after an event. Fields may be added.
type Load struct {
	InFlight int // slots in use
	// Queued is how many callers wait. With Admit, where nobody waits, it is how many
	// were refused for lack of a slot since the last start, as far as its owner counts them.
	Queued int
	// Enforced is how many slots may be in use now. It differs from the law's limit
	// where a bound, a signal, a slow start or a number of workers overrules it, in
	// either direction. For work that is admitted over the limit, as in a dry run, it
	// is at least InFlight. Zero means the law's own limit.
	Enforced int
	Class    uint8 // with Admit: of the work that starts, as in its Sample
}

// Law turns samples into a limit. It is not safe for concurrent use: its owner, a
// limiter or a pool, calls it under a lock, or from one goroutine. Times never go
// backwards. A law that can also say what it does implements [Reporter].
type Law interface {
	// Limit is how much may run at once now; at least 1.
	Limit() int
	// Admit says that one piece of work starts.
	Admit(at time.Duration, load Load)
	// Observe takes the end of one piece of work, in the order in which work
	// ends. It may change the limit.
	Observe(s Sample, load Load)
}

// Forgetter is implemented by laws that keep something about classes of work. Its owner
// calls Forget when the class becomes that of other work, none of which has started, and
// when all that did start of the class before has been observed.
type Forgetter interface {
	Forget(class uint8)
}

// Fixed is the law of an operator that knows the number.
type Fixed struct{ n int }

// NewFixed returns a law whose limit is always n, or 1 when n is smaller.
func NewFixed(n int) *Fixed { return &Fixed{max(n, 1)} }

// Limit returns n.
func (f *Fixed) Limit() int { return f.n }

// Admit does nothing.
func (f *Fixed) Admit(time.Duration, Load) {}

// Observe does nothing: a fixed limit learns nothing.
func (f *Fixed) Observe(Sample, Load) {}

// Name returns "fixed".
func (f *Fixed) Name() string { return "fixed" }

// State returns "fixed".
func (f *Fixed) State() string { return "fixed" }

// Why returns "fixed": the limit never changes.
func (f *Fixed) Why() string { return "fixed" }
