// Package spillway holds the types that all packages of the module share:
// priorities, the cost and the kind of work, rejections and their reasons, and
// the error of a drain that ran out of time. The package makes no decisions.
// Start with package limiter (may the work run now?) or package workerpool (on
// which goroutine does it run?).
//
// # Cost
//
// The package uses the standard library only. Refusals are made beforehand and allocate
// nothing. A priority, cost or kind in a context allocates as context.WithValue does ("go
// test . -run Alloc").
//
// # Pitfalls
//
//   - errors.Is(err, [ErrRejected]) holds for every refusal. Compare [Rejection].Reason,
//     not the text of the error.
//   - Many callers share one *Rejection, which must not be changed.
//   - A kind ([WithKind]) names what the work does, such as a query. Names and ids of
//     callers say nothing about how long work takes.
package spillway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spillway-go/spillway/internal/carry"
)

// Priority orders work that competes for the same capacity: Low, Normal, High and
// Critical. The zero value is Normal, so work without a priority is neither favoured
// nor shed first.
type Priority int8

const (
	Low      Priority = iota - 1 // shed first: batch work, prefetches, retries of other callers
	Normal                       // the zero value
	High                         // shed after Normal
	Critical                     // shed last
)

// String returns "low", "normal", "high" or "critical", and "priority(n)" for
// any other value.
func (p Priority) String() string {
	switch p {
	case Low:
		return "low"
	case Normal:
		return "normal"
	case High:
		return "high"
	case Critical:
		return "critical"
	}
	return fmt.Sprintf("priority(%d)", int8(p))
}

// MarshalText returns the text of String, so that JSON and logs contain the name, also
// where a priority is the key of a map.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText accepts low, normal, high and critical, in upper or lower case, but no numbers,
// because the number of priorities may change. An error leaves the priority unchanged. A text of at
// most 32 bytes that is accepted allocates nothing.
func (p *Priority) UnmarshalText(text []byte) error {
	for one := Low; one <= Critical; one++ {
		if strings.EqualFold(string(text), one.String()) {
			*p = one
			return nil
		}
	}
	return fmt.Errorf("spillway: unknown priority %.20q: use low, normal, high or critical", string(text))
}

// WithPriority returns a context that carries p to every limiter and pool that the
// work passes through. WithPriority allocates; middleware calls it once per request.
func WithPriority(ctx context.Context, p Priority) context.Context {
	w := carry.In(ctx)
	w.Priority = int8(p)
	return w
}

// PriorityFrom returns the priority that ctx carries, or Normal.
func PriorityFrom(ctx context.Context) Priority {
	if w := carry.From(ctx); w != nil {
		return Priority(w.Priority)
	}
	return Normal
}

// WithCost returns a context that carries n, the number of slots that the work takes, to
// every limiter that the work passes through. An n below one means one. The bounds of each
// limiter apply. WithCost allocates.
func WithCost(ctx context.Context, n int) context.Context {
	w := carry.In(ctx)
	w.Cost = min(max(n, 1), math.MaxInt32)
	return w
}

// CostFrom returns the cost that ctx carries, or 0 if ctx carries none.
func CostFrom(ctx context.Context) int {
	if w := carry.From(ctx); w != nil {
		return w.Cost
	}
	return 0
}

// WithKind returns a context that carries the kind of the work, such as a route or the name
// of a query, to every limiter and pool that the work passes through. Work is compared with
// work of the same kind, which should take about as long. The number of names is not bounded.
// A limiter distinguishes the most frequent names, about twenty, and shows them: in its Stats and metrics, its
// state, its leaks and the error of a drain. An empty name means no kind. WithKind allocates.
func WithKind(ctx context.Context, name string) context.Context {
	w := carry.In(ctx)
	w.Kind = name
	return w
}

// KindFrom returns the kind that ctx carries, or "" if ctx carries none.
func KindFrom(ctx context.Context) string {
	if w := carry.From(ctx); w != nil {
		return w.Kind
	}
	return ""
}

// ErrRejected is matched by every *Rejection: errors.Is(err, ErrRejected) distinguishes
// refused work from work that was started and failed.
var ErrRejected = errors.New("spillway: rejected")

// Rejection reports work that was never started, the reason, and what the caller may
// do. A Rejection is immutable and may be shared by many callers at once. Limiters and
// pools round RetryAfter to the steps of a table, so that a refusal without a wait
// allocates nothing.
type Rejection struct {
	Reason     Reason
	Cause      string        // with ReasonSignal: the user's signal; with ReasonBudget: the cause of the lease; else empty
	RetryAfter time.Duration // time until capacity is expected; zero means no advice
	Waited     time.Duration // how long the caller waited before the refusal
}

func (r *Rejection) Error() string {
	s := "spillway: rejected: " + r.Reason.String()
	if r.Cause != "" {
		s += " (" + r.Cause + ")"
	}
	if r.RetryAfter > 0 {
		s += ", retry after " + r.RetryAfter.String()
	}
	return s
}

// Is reports whether target is ErrRejected.
func (r *Rejection) Is(target error) bool { return target == ErrRejected }

// Reason says why work was refused. Reasons may be added: treat an unknown reason as
// a lack of capacity.
type Reason uint8

// The reasons, in the order in which reports list them. A new reason comes last: the numbers are part of
// the API.
const (
	ReasonQueueFull        Reason = iota + 1 // no slot is free, and the queue is full or the caller may not wait
	ReasonWaitTooLong                        // waited, or would have to wait, longer than allowed
	ReasonDeadlineTooClose                   // the caller's deadline leaves no time for the work
	ReasonPreempted                          // a more important caller took the place in the queue
	ReasonMemory                             // the heap is too close to its limit
	ReasonScheduler                          // runnable goroutines wait too long for a processor
	ReasonSignal                             // a user's signal; Rejection.Cause names the signal
	ReasonQuota                              // the caller's own share is used up
	ReasonBudget                             // the lease on a shared budget is used up or expired; Rejection.Cause names it
	ReasonDraining                           // the intake is closed while accepted work finishes
	ReasonClosed                             // the limiter or pool is closed
)

var reasons = [...]string{
	ReasonQueueFull: "queue_full", ReasonWaitTooLong: "wait_too_long", ReasonDeadlineTooClose: "deadline_too_close",
	ReasonPreempted: "preempted", ReasonMemory: "memory", ReasonScheduler: "scheduler", ReasonSignal: "signal",
	ReasonQuota: "quota", ReasonBudget: "budget", ReasonDraining: "draining", ReasonClosed: "closed",
}

// Reasons returns every reason, in the order of the constants. Metrics list all reasons with it.
func Reasons() []Reason {
	all := make([]Reason, 0, len(reasons)-1)
	for r := ReasonQueueFull; int(r) < len(reasons); r++ {
		all = append(all, r)
	}
	return all
}

// String returns the reason in snake case, as metrics label it.
func (r Reason) String() string {
	if r >= ReasonQueueFull && int(r) < len(reasons) {
		return reasons[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// MarshalText returns the text of String, so that JSON and logs contain the name, also
// where a reason is the key of a map.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText accepts the text that MarshalText returns for a known reason. An error
// leaves the reason unchanged.
func (r *Reason) UnmarshalText(text []byte) error {
	for i, name := range reasons {
		if name != "" && name == string(text) {
			*r = Reason(i)
			return nil
		}
	}
	return fmt.Errorf("spillway: unknown reason %.30q", text)
}

// DrainError reports a drain whose context ended before the work did.
type DrainError struct {
	Dropped int   // accepted or waiting, and never started
	Running int   // started, and still running when Drain returned
	Cause   error // the context's error

	// Oldest is how long the oldest running work has run, and Kind is the kind of that work, if named. Only a
	// limiter says so, and not of long work.
	Oldest time.Duration
	Kind   string
}

func (e *DrainError) Error() string {
	text := fmt.Sprintf("spillway: drain ended early (%v): %d dropped, %d still running", e.Cause, e.Dropped, e.Running)
	if e.Oldest > 0 {
		text += fmt.Sprintf(", the oldest for %v", e.Oldest.Round(time.Millisecond))
	}
	if e.Kind != "" {
		text += fmt.Sprintf(", of kind %.60s", e.Kind)
	}
	return text
}

// Unwrap returns the context's error.
func (e *DrainError) Unwrap() error { return e.Cause }

// PanicError carries a panic out of a goroutine that no caller waits for, or whose
// owner asked for errors instead of panics.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // the stack of the goroutine that panicked, as debug.Stack prints it
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

// Unwrap returns the panic's value if the value is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
