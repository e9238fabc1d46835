// Package limit holds control laws. A law observes the start and the end of work and sets the
// concurrency limit. A law is a pure state machine without clock, lock or goroutine. So the same
// code runs inside the live limiter, in tests on virtual time and in the simulator.
//
// [NewAdaptive] makes the default law of package limiter, and [NewAdaptiveForThroughput] that of
// package workerpool. [NewFixed] makes a constant. [NewAIMD] and [NewGradient2] make
// published laws, to compare with. Most code only passes a law to its owner:
//
//	slots, err := limiter.New(limiter.Config{Law: limit.NewFixed(8)})
//
// # Cost
//
// Laws do not allocate ("go test ./limit -run Allocate"). "go test ./limit -run '^$' -bench Law"
// prints their times.
//
// # Pitfalls
//
//   - A law of this package belongs to one owner, a limiter or a pool. The samples of two owners in
//     one law would describe neither of them, so the New of a second owner returns an error.
//   - The adaptive law starts with a limit of 32. Of two limits with the same throughput it takes the
//     lower one, except for work of less than 6 ms with few slots.
//     docs/adr/0005-every-change-of-the-limit-is-a-trial.md explains the trials.
//   - An owner passes the class of work with its start ([Load].Class) and its end ([Sample].Class).
//     Without classes, a law treats all work as one kind.
//   - A law of your own that keeps state per class implements [Forgetter], also if it wraps another
//     law.
//   - Gradient2 has its published weaknesses: see "spillway lab overload".
//
// # When not to use it
//
// The package is for choosing a law, and for writing one.
package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway"
)

// Outcome is the result of a finished piece of work, as far as it matters to a law. Outcomes may
// be added later: a law treats an outcome that it does not know as Unknown.
type Outcome uint8

const (
	Success  Outcome = iota // finished: the duration is a latency sample
	Deadline                // ended by its deadline: the duration is a lower bound of the latency, and the work is lost
	Canceled                // its caller left: the duration is a lower bound, and a sign of overload only if the work was slow
	Overload                // refused by a backend further down: a sign of overload, the duration means nothing
	Failed                  // failed for its own reasons: no information about load
	Unknown                 // ended in an unknown way: no information
)

// String returns the name of the outcome in lower case.
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

// OutcomeOf returns the outcome of work that ended with err. A rejection from a backend further
// down is Overload even if the error also matches a context's error. If an error matches both
// a deadline and a cancellation, the outcome is Deadline.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Success
	}
	return outcomeOf(err)
}

// outcomeOf classifies err. An error whose methods panic, such as a nil pointer in the interface,
// is Failed: permits are released on goroutines that do not recover from panics.
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
	Seq        uint64        // number of the admission, from 1: the Seq-th call of Admit
	Start, End time.Duration // times of admission and of the end
	Outcome    Outcome
	Class      uint8 // below Classes; latencies are compared only within a class
}

// Classes is how many classes of work a law tells apart.
const Classes = 24

// Load is the state of the law's owner right after an event. Fields may be added.
type Load struct {
	InFlight int // slots in use
	// Queued is the number of waiting callers. If nobody waits, Admit gets the number of callers
	// refused for lack of a slot since the last start, if the owner counts them.
	Queued int
	// Enforced is how many slots may be in use now. It is above or below the law's limit
	// if a bound, a signal, a slow start or the number of workers overrules the law.
	// If work is admitted over the limit, as in a dry run, Enforced is at least InFlight.
	// Zero means the law's own limit.
	Enforced int
	Class    uint8 // only with Admit: class of the starting work, as in its Sample
}

// Law turns samples into a limit. A Law is not safe for concurrent use: its owner, a limiter or
// a pool, calls it under a lock or from one goroutine. Times never go backwards. A law that can
// also describe its state implements [Reporter].
type Law interface {
	// Limit returns how many slots may be in use now; at least 1.
	Limit() int
	// Admit reports the start of one piece of work.
	Admit(at time.Duration, load Load)
	// Observe reports the end of one piece of work, in the order of the ends.
	// Observe may change the limit.
	Observe(s Sample, load Load)
}

// Forgetter is implemented by laws that keep state per class of work. The law's owner calls
// Forget when it reassigns a class to other work. By then all started work of the old class has
// been observed, and no work of the new class has started.
type Forgetter interface {
	Forget(class uint8)
}

type fixed struct{ n int }

// NewFixed returns a law whose limit is always n, or 1 when n is smaller.
// The law is for operators who know the right number.
func NewFixed(n int) Law { return newFixed(n) }

func newFixed(n int) *fixed { return &fixed{max(n, 1)} }

// Limit returns n.
func (f *fixed) Limit() int { return f.n }

// Admit does nothing.
func (f *fixed) Admit(time.Duration, Load) {}

// Observe does nothing: a fixed limit learns nothing.
func (f *fixed) Observe(Sample, Load) {}

// Name returns "fixed".
func (f *fixed) Name() string { return "fixed" }

// State returns "fixed".
func (f *fixed) State() string { return "fixed" }

// Why returns "fixed": the limit never changes.
func (f *fixed) Why() string { return "fixed" }

// Constant is how package laws tells a law that never learns.
func (f *fixed) Constant() {}
