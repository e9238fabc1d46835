// Package fanout answers one request from several sources at once: required ones, without which
// there is no answer, and optional ones.
//
//	lookup, err := fanout.New(fanout.Config{},
//		fanout.Required("database", database.Find, (*Answer).Merge),
//		fanout.Optional("cache", cache.Find, (*Answer).Merge).Within(20*time.Millisecond),
//	)
//	if err != nil {
//		return err // the configuration is wrong
//	}
//
//	got, err := lookup.Do(ctx, query)
//	// err: the error of the database. got.Missing: the branches without an answer, and why.
//
// Keep a Fanout for the life of the program, because it learns: whether its branches are faster
// sequentially or in parallel, how long each branch takes, and with how little remaining time an
// optional branch was recently late.
//
// Map calls one function for every element of a slice, with bounded concurrency. Singleflight lets
// concurrent callers with the same key share the work.
//
// # Cost
//
// A call allocates nothing in sequence. A call in parallel allocates its context, of 24 bytes ("go
// test ./fanout -run Alloc"). "spillway lab F" measures
// where two sources at once are faster than one after the other.
//
// # Pitfalls
//
//   - Map, and a call whose required branch failed, return without waiting for functions that still
//     run. A function must not write to memory that its caller uses afterwards: a function returns
//     what it makes.
//   - A panic of a branch or of a function is an error with a stack: a *spillway.PanicError.
//   - An optional branch needs its own deadline ([Branch.Within]). Otherwise the answer waits for
//     the branch as long as the context allows.
//   - The reason deadline_too_close in [Result].Missing means that an optional branch was not
//     started, because recent calls with about as much remaining time were late (see [Optional]).
//
// # When not to use it
//
// For a few calls that must all succeed, without a bound and without partial answers, errgroup is
// smaller.
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

// Config configures a Fanout. The zero value works.
type Config struct {
	// Mode selects where branches run. The zero value is Auto.
	Mode Mode

	// Bulkhead bounds the goroutines that run branches beside their callers, over all Fanouts and
	// Maps that share the Bulkhead. Nil means a private Bulkhead of NewBulkhead's default size. A branch
	// without a token runs in the caller.
	Bulkhead *Bulkhead

	// Limiter, if set, must also admit each goroutine that runs branches beside its caller. Do only
	// uses TryAcquire, so no caller waits for this limiter while holding a slot of another. The
	// goroutines give this limiter no latency samples. While the limiter refuses, nothing is hedged.
	Limiter *limiter.Limiter

	// OnLate receives the outcome of each branch that ends after the caller stopped waiting for it,
	// on the branch's goroutine. Of a hedged branch, OnLate also receives the panic of an attempt
	// while the other attempt goes on, and a second attempt's panic after the first has failed. A
	// late panic is a *spillway.PanicError and never ends the process.
	// If OnLate is nil, only Stats counts late branches.
	OnLate func(*BranchError)
}

// Mode selects where branches run: Auto, Sequential or Parallel.
type Mode uint8

const (
	Auto       Mode = iota // the mode that was recently measured as faster; at first Parallel
	Sequential             // one after the other, in the caller
	Parallel               // on goroutines beside the caller, as far as the bulkhead allows
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

// Fanout runs the same branches for every request. It is safe for concurrent use, and none of its
// goroutines outlives the branch that it runs. Create a Fanout with New: Do of a zero Fanout
// returns an error. A Fanout must not be copied.
type Fanout[Req, Res any] struct {
	plan
	branches []branch[Req, Res] // the required ones first
	frames   sync.Pool
	calls    atomic.Uint64 // number of calls; selects which calls are measured
}

// plan is what a Fanout is apart from its types.
type plan struct {
	cfg      Config
	specs    []*spec // of the branches
	within   bool    // some branch has a deadline of its own
	hedged   bool    // some branch is hedged
	bulkhead *Bulkhead
	base     time.Time

	learn      learner
	hedgeAfter atomic.Int64 // when a pause of hedging ends, in nanoseconds since base
	procs      atomic.Int32 // GOMAXPROCS, read every 64 calls because reading takes a lock
	counts     counts
}

// Result is the merged answer of a call.
type Result[Res any] struct {
	// Value holds the merged answers of the branches. It is the zero value when the call failed.
	Value Res
	// Missing lists the branches without an answer, and why: the required ones first, each in the
	// order of New. Missing is nil when the answer is complete.
	// When the call failed, Missing lists the failures known by then.
	Missing []BranchError
}

// BranchError is the error of one branch.
type BranchError struct {
	Branch string // name of the branch
	// Err is the error that the branch returned. It is a *spillway.PanicError when the branch
	// panicked, a *spillway.Rejection when an optional branch was not started (see Optional), and
	// the context's error when the context ended first. OnLate gets a nil Err when the branch
	// answered after all.
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

// New returns a Fanout over the given branches. Required branches start first, then optional ones,
// each in the order given. Answers are merged in the same order. The error names what is wrong.
func New[Req, Res any](cfg Config, branches ...Branch[Req, Res]) (*Fanout[Req, Res], error) {
	if cfg.Mode > Parallel {
		return nil, fmt.Errorf("fanout: unknown mode %d: use Auto, Sequential or Parallel", cfg.Mode)
	}
	if len(branches) == 0 {
		return nil, errors.New("fanout: there are no branches")
	}
	if cfg.Bulkhead.isZero() {
		return nil, errors.New("fanout: " + useNewBulkhead)
	}
	f := &Fanout[Req, Res]{plan: plan{cfg: cfg, bulkhead: cfg.Bulkhead, base: time.Now()}}
	names := map[string]bool{}
	for _, required := range []bool{true, false} {
		for _, b := range branches {
			switch {
			case b.branch.run == nil || b.branch.name == "":
				return nil, fmt.Errorf("fanout: branch %q needs a name and two functions: use Required or Optional", b.branch.name)
			case b.branch.within < 0:
				return nil, fmt.Errorf("fanout: branch %q: Within is %v: it cannot be negative", b.branch.name, b.branch.within)
			case b.branch.hedge != nil && b.branch.hedge.Ratio() == 0:
				return nil, fmt.Errorf("fanout: branch %q: the budget of Hedged is a zero value: use retrybudget.New", b.branch.name)
			case b.branch.required != required:
				continue
			case names[b.branch.name]:
				return nil, fmt.Errorf("fanout: there are two branches %q", b.branch.name)
			}
			names[b.branch.name] = true
			f.branches = append(f.branches, b.branch)
			f.within = f.within || b.branch.within > 0
			f.hedged = f.hedged || b.branch.hedge != nil
		}
	}
	for i := range f.branches {
		b := &f.branches[i].spec
		f.specs = append(f.specs, b)
		b.times = &times{high: 0.95}
		if b.hedge != nil {
			b.times.high = max(b.times.high, 1-b.hedge.Ratio())
		}
		if !b.required {
			b.lateness = new(lateness)
		}
	}
	if f.bulkhead == nil {
		f.bulkhead, _ = NewBulkhead(0)
	}
	f.procs.Store(int32(runtime.GOMAXPROCS(0)))
	f.learn.reset(len(f.branches))
	f.frames.New = func() any { return newFrame(f) }
	return f, nil
}

// errUnmade is Do's error for a Fanout that New did not make, and for the nil Fanout that New
// returns with an error.
var errUnmade = errors.New("fanout: this Fanout was not made: use New, and look at its error")

// Do runs the branches for req and merges their answers.
//
// The error is nil when every required branch has answered; the result then names the missing
// optional branches. When a required branch fails, Do cancels the other branches, with the
// *BranchError as their context's cause, and returns that error without waiting for them. When
// ctx's deadline passes before all required branches have answered, Do returns the *BranchError of
// the first required branch without an answer, which wraps context.DeadlineExceeded. A deadline
// that passes later makes the result partial. When ctx is cancelled before all branches have
// answered, Do returns context.Canceled itself. If ctx has already ended, Do starts nothing and
// returns ctx.Err().
//
// A panic of a branch is an error of that branch. A branch that calls runtime.Goexit ends the
// caller's goroutine as well, on whichever goroutine the branch runs.
//
// A branch that outlasts its context is missing, with the context's error; only OnLate receives
// what the branch returns afterwards. The result is therefore the same whether the branch runs in
// the caller or on another goroutine; in the latter case Do returns without waiting for the branch.
//
// Do never waits for a branch that runs on another goroutine and ignores its context. Such a branch
// must not write to anything reachable from req, because the caller may reuse req; the branch's
// answer is dropped. A caller that runs a branch itself returns only after the branch. The caller
// runs branches in Sequential, when the bulkhead is full, and in Auto when measured as faster:
// either all branches, one after the other, or, in calls of less than 200 µs, some of the parallel
// branches. If a branch may hang forever, use Parallel and a sufficient bulkhead.
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
	var res Result[Res]
	var err error
	if mode != inSequence {
		res, err = f.frame().parallel(ctx, req, mode == joined, measured)
	} else {
		res, err = f.frames.Get().(*frame[Req, Res]).sequential(ctx, req, measured)
	}
	if err != nil {
		f.counts.failed.Add(1)
	} else if res.Missing != nil {
		f.counts.partial.Add(1)
	}
	return res, err
}

// choose returns the mode of call n, and whether the call is measured.
func (p *plan) choose(n uint64) (mode uint32, measured bool) {
	switch {
	case p.cfg.Mode == Sequential:
		return inSequence, p.learn.due(n)
	case p.hedged: // the caller must be free to return the answer of a hedge
		return inParallel, true
	case p.cfg.Mode == Parallel:
		return inParallel, p.learn.due(n)
	}
	return p.learn.choose(n)
}

// learned records a measured call that succeeded.
func (p *plan) learned(parallel bool, wall, sum, longest time.Duration) {
	if p.cfg.Mode == Auto && !p.hedged {
		p.learn.learn(parallel, wall, sum, longest)
		return
	}
	p.learn.pace(wall, measureEvery)
}

// shedPause is how long hedging pauses after a refusal by a limiter.
const shedPause = time.Second

func (p *plan) pauseHedging() {
	if p.hedged {
		p.hedgeAfter.Store(int64(p.now() + shedPause))
	}
}

// now returns the time since New: one reading of the monotonic clock.
func (p *plan) now() time.Duration { return time.Since(p.base) }
