// Package fanout answers one request from several sources at once: some it
// cannot do without, others it would like to have.
//
//	lookup, err := fanout.New(fanout.Config{Name: "clinicians"},
//		fanout.Required("database", database.Find, (*Answer).Merge),
//		fanout.Optional("cache", cache.Find, (*Answer).Merge).Within(20*time.Millisecond),
//	)
//	if err != nil {
//		return err // a misconfiguration, in words
//	}
//
//	got, err := lookup.Do(ctx, query)
//	// err: the database failed, and says so. got.Missing: what the answer lacks, and why.
//
// A Fanout lives as long as the program, because it learns: whether its branches
// are faster one after the other or at once, how long each takes, and with how
// little time an optional one has lately been late.
//
// Map does one thing to every element of a slice, a bounded number at a time.
// Group lets callers that want the same thing at the same time share the work.
package fanout

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limiter"
)

// Config says how a Fanout works. The zero value works.
type Config struct {
	// Name labels this value in errors of New and in Stats.
	Name string

	// Mode is Auto unless said otherwise.
	Mode Mode

	// Budget bounds the goroutines that run branches beside their callers, over
	// all values that share it. Nil means a budget of its own, of the default
	// size of NewBudget. A branch without a token runs in the caller.
	Budget *Budget

	// Limiter, if set, must admit each of these goroutines too. It is only ever
	// asked by TryAcquire, so that no caller waits for it while holding a slot of
	// another, and a goroutine is no latency sample for it. While it refuses, nothing is
	// hedged.
	Limiter *limiter.Limiter

	// BorrowedContext says that no branch keeps its context after it has
	// returned, not even in a context derived from it or in a goroutine. Then
	// contexts are reused, and a parallel call allocates nothing; otherwise each
	// has one of its own, the call's only allocation, of 24 bytes. Nothing but
	// your word can spare it: that a context is kept leaves no trace, and if it were
	// used again the branch would see another call's deadline, values and end.
	BorrowedContext bool

	// OnLate is told how a branch ended that the caller no longer waited for, on
	// that branch's goroutine. A late panic is a *spillway.PanicError; it never
	// ends the process. Nil means that only Stats counts them.
	OnLate func(*BranchError)
}

// Mode says where branches run.
type Mode uint8

const (
	Auto       Mode = iota // whichever measured faster lately, at first Parallel
	Sequential             // one after the other, in the caller
	Parallel               // each on a goroutine beside the caller, as far as the budget goes
)

// String returns "auto", "sequential" or "parallel".
func (m Mode) String() string {
	switch m {
	case Auto:
		return "auto"
	case Sequential:
		return "sequential"
	case Parallel:
		return "parallel"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Fanout runs the same branches for every request. It is safe for concurrent
// use, and none of its goroutines outlives the branch it runs. Create it with New:
// Do of another one returns an error that says so. It must not be
// copied. Under testing/synctest a value belongs to the bubble that first used
// it: make one in each test.
type Fanout[Req, Res any] struct {
	cfg      Config
	branches []branch[Req, Res] // the required ones first
	required int
	within   bool // some branch has a time limit of its own
	hedged   bool // some branch is hedged
	budget   *Budget
	base     time.Time
	frames   sync.Pool

	calls  atomic.Uint64 // also says which calls are measured
	learn  learner
	shed   atomic.Int64 // until when nothing is hedged, since base
	procs  atomic.Int32 // GOMAXPROCS, read now and then: it takes a lock
	counts counts
}

// Result is what a call brought together.
type Result[Res any] struct {
	// Value holds what the branches answered. It is the zero value when the call
	// failed.
	Value Res
	// Missing names the branches without an answer, and why; nil when the
	// answer is whole. When the call failed it lists the failures known by then.
	Missing []BranchError
}

// Partial reports whether a branch is missing.
func (r Result[Res]) Partial() bool { return len(r.Missing) > 0 }

// MissingNames returns the names of the missing branches, the required ones
// first, each in the order of New.
func (r Result[Res]) MissingNames() []string {
	var names []string
	for _, m := range r.Missing {
		names = append(names, m.Branch)
	}
	return names
}

// BranchError is the error of one branch.
type BranchError struct {
	Branch string // its name
	// Err is what the branch returned; a *spillway.PanicError when it panicked; a
	// *spillway.Rejection when it is optional and was not started, as Optional
	// says; the error of the context when that ended first. Nil for OnLate when the
	// branch answered after all.
	Err error
}

func (e *BranchError) Error() string {
	if e.Err == nil {
		return "fanout: branch " + e.Branch + ": answered too late"
	}
	return "fanout: branch " + e.Branch + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *BranchError) Unwrap() error { return e.Err }

// New returns a Fanout over the given branches. Required ones are started first,
// then optional ones, each in the order given; their answers are merged in that
// order too. The error says what is wrong.
func New[Req, Res any](cfg Config, branches ...Branch[Req, Res]) (*Fanout[Req, Res], error) {
	if cfg.Mode > Parallel {
		return nil, fmt.Errorf("fanout %q: unknown mode %d: use Auto, Sequential or Parallel", cfg.Name, cfg.Mode)
	}
	if len(branches) == 0 {
		return nil, fmt.Errorf("fanout %q: there are no branches", cfg.Name)
	}
	if cfg.Budget.unmade() {
		return nil, fmt.Errorf("fanout %q: %s", cfg.Name, useNewBudget)
	}
	f := &Fanout[Req, Res]{cfg: cfg, budget: cfg.Budget, base: time.Now()}
	names := map[string]bool{}
	for _, required := range []bool{true, false} {
		for _, b := range branches {
			switch {
			case b.spec.run == nil || b.spec.name == "":
				return nil, fmt.Errorf("fanout %q: branch %q needs a name and two functions: use Required or Optional", cfg.Name, b.spec.name)
			case b.spec.within < 0:
				return nil, fmt.Errorf("fanout %q: branch %q: Within is %v: it cannot be negative", cfg.Name, b.spec.name, b.spec.within)
			case b.spec.hedge != nil && b.spec.hedge.Ratio() == 0:
				return nil, fmt.Errorf("fanout %q: branch %q: the budget of Hedged is a zero value: use retrybudget.New", cfg.Name, b.spec.name)
			case b.spec.required != required:
				continue
			case names[b.spec.name]:
				return nil, fmt.Errorf("fanout %q: there are two branches %q", cfg.Name, b.spec.name)
			}
			names[b.spec.name] = true
			f.branches = append(f.branches, b.spec)
			f.within = f.within || b.spec.within > 0
			f.hedged = f.hedged || b.spec.hedge != nil
			if required {
				f.required++
			}
		}
	}
	for i := range f.branches {
		b := &f.branches[i]
		b.times = &times{high: 0.95}
		if b.hedge != nil {
			b.times.high = max(b.times.high, 1-b.hedge.Ratio())
		}
		if !b.required {
			b.lateness = new(lateness)
		}
	}
	if f.budget == nil {
		f.budget, _ = NewBudget(0)
	}
	f.procs.Store(int32(runtime.GOMAXPROCS(0)))
	f.learn.reset(len(f.branches))
	f.frames.New = func() any { return newFrame(f) }
	return f, nil
}

// errUnmade is also that of a nil Fanout, which is what New returns with an error.
var errUnmade = errors.New("fanout: this Fanout was not made: use New, and look at its error")

// Do runs the branches for req and merges what they answer.
//
// The error is nil when every required branch has answered; what else is missing
// is named in the result. When a required branch fails, Do cancels the others,
// with the *BranchError as their context's cause, and returns that error without
// waiting for them. When the deadline of ctx passes before all required branches have
// answered, the error is the *BranchError of the first of these that has not, and wraps
// context.DeadlineExceeded; a deadline that passes later makes the result partial.
// When ctx is cancelled before all branches have answered, the error is
// context.Canceled itself. With a ctx that has ended already nothing is started, and the
// error is that of ctx.
//
// Panics of a branch are errors of that branch. A branch that calls
// runtime.Goexit ends the caller's goroutine as well, whatever it runs on.
//
// A branch that outlasts its context is missing, with the error of the context,
// whatever it returns afterwards: OnLate is told. So the result is the same whether
// it runs beside the caller, which then returns without it, or in the caller.
//
// Do never waits for a branch that runs beside it and ignores its context. That
// branch must not write to anything reachable from req, which the caller may use
// again; what it returns is dropped. A caller that runs a branch itself returns
// only after it: in Sequential, when the budget is spent, and in Auto when that was
// faster: one after the other, or, in calls of less than 200 µs,
// one of those that run at once. Where a branch may hang for ever, use Parallel
// and a budget that suffices.
func (f *Fanout[Req, Res]) Do(ctx context.Context, req Req) (Result[Res], error) {
	if f == nil || f.branches == nil {
		return Result[Res]{}, errUnmade
	}
	if err := ctx.Err(); err != nil {
		return Result[Res]{}, err
	}
	n := f.calls.Add(1)
	mode, measured := f.choose(n)
	if n%64 == 0 {
		f.procs.Store(int32(runtime.GOMAXPROCS(0)))
	}
	fr := f.frames.Get().(*frame[Req, Res])
	var res Result[Res]
	var err error
	if mode != inSequence {
		res, err = fr.parallel(ctx, req, mode == joined, measured)
	} else {
		res, err = fr.sequential(ctx, req, measured)
	}
	if err != nil {
		f.counts.failed.Add(1)
	} else if res.Missing != nil {
		f.counts.partial.Add(1)
	}
	return res, err
}

// choose says how call n is to run, and whether it is measured.
func (f *Fanout[Req, Res]) choose(n uint64) (mode uint32, measured bool) {
	switch {
	case f.cfg.Mode == Sequential:
		return inSequence, f.learn.due(n)
	case f.hedged: // a hedge needs a caller that is free to take it
		return inParallel, true
	case f.cfg.Mode == Parallel:
		return inParallel, f.learn.due(n)
	}
	return f.learn.choose(n)
}

// learned is told of each measured call that succeeded.
func (f *Fanout[Req, Res]) learned(parallel bool, wall, sum, longest time.Duration) {
	if f.cfg.Mode == Auto && !f.hedged {
		f.learn.learn(parallel, wall, sum, longest)
		return
	}
	f.learn.pace(wall, measureEvery)
}

// now is the time since New: one reading of the monotonic clock.
func (f *Fanout[Req, Res]) now() time.Duration { return time.Since(f.base) }
