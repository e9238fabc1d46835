// Package limit holds control laws: they look at finished work and say how
// much may run at once. A law is a pure state machine. It has no clock, no lock
// and no goroutine, so the same value runs inside the live limiter, in tests on
// virtual time and in the simulator.
package limit

import "time"

// Outcome says what a finished piece of work tells a law.
type Outcome uint8

const (
	Success  Outcome = iota // finished: its duration is a latency sample
	Censored                // ended by its deadline or its caller: it would have taken at least this long
	Overload                // refused further below: a sign of overload, its duration means nothing
	Failed                  // failed for its own reasons: says nothing about load
)

// Sample is one finished piece of work. Times count from the start of the
// limiter.
type Sample struct {
	Start, End time.Duration // when it was admitted and when it ended
	InFlight   int           // how much ran when it was admitted, itself included
	Outcome    Outcome
}

// Law turns samples into a limit. It is not safe for concurrent use: its owner
// calls it under a lock, or from one goroutine.
type Law interface {
	// Name is the law's short name, such as "fixed".
	Name() string
	// Limit is how much may run at once now; at least 1.
	Limit() int
	// Observe takes one sample, in the order in which work ended. It may change
	// the limit.
	Observe(Sample)
	// State says in a few words what the law is doing and why.
	State() string
}

// Fixed is the law of an operator who knows the number.
type Fixed struct{ n int }

// NewFixed returns a law whose limit is always n, or 1 when n is smaller.
func NewFixed(n int) *Fixed { return &Fixed{max(n, 1)} }

// Name returns "fixed".
func (f *Fixed) Name() string { return "fixed" }

// Limit returns n.
func (f *Fixed) Limit() int { return f.n }

// Observe does nothing: a fixed limit learns nothing.
func (f *Fixed) Observe(Sample) {}

// State returns "fixed".
func (f *Fixed) State() string { return "fixed" }
