package workerpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// Config says what a Pool does. The zero value works.
type Config struct {
	// Name labels this pool in metrics, reports and profiles.
	Name string

	// MinWorkers stay when idle: a pool never runs fewer jobs at once while it has
	// them. MaxWorkers is the most jobs that run at once, and means nothing else;
	// zero is 10,000. Workers start when a job needs one.
	//
	// How many run within those bounds is decided by Law or by GrowAt. With neither,
	// it is as many as the bound allows if MaxWorkers is set; otherwise the pool
	// finds out by a law of its own, and runs never fewer than GOMAXPROCS.
	MinWorkers, MaxWorkers int

	// Law decides how many jobs run at once. Nil means
	// limit.NewAdaptiveForThroughput, unless MaxWorkers is set. The pool owns the
	// law: one value serves one pool. It is asked on goroutines of the pool, so a panic
	// of a law of your own ends the process.
	Law limit.Law

	// QueueSize is how many accepted jobs may wait for a worker. Negative means
	// none: a job is accepted only when a worker takes it at once. Zero means
	// 16,384, or 5 times MaxWorkers where that alone is set; a pool with a law
	// begins with 1,024 of them, and uses more where they are worked off within a
	// tenth of a second.
	//
	// It bounds memory. While more arrives than can be done, the queue is kept
	// shorter, within the time that a job runs; only a pool with both
	// MaxWorkers and QueueSize and nothing else set fills its queue regardless.
	QueueSize int

	// MaxWait bounds how long Submit and Do wait for room in a full queue. Zero
	// means as long as their context allows; negative means not at all, as
	// TrySubmit does.
	MaxWait time.Duration

	// IdleTimeout is how long a worker above MinWorkers stays without a job,
	// give or take a sixteenth. Zero means 10 seconds.
	IdleTimeout time.Duration

	// GrowAt makes the pool grow by a rule instead of a law: it starts with
	// MinWorkers, at least one, and allows a quarter more, up to MaxWorkers,
	// whenever the queue is filled to this share (above 0, at most 1) of what it
	// may hold, but not sooner than GrowCooldown (zero: 500 ms) after the last
	// time. Workers that retire take the allowance with them.
	GrowAt       float64
	GrowCooldown time.Duration

	// OnDone is told of the end of every accepted job, on the goroutine that
	// ended it; while it runs, that worker does nothing else and a caller of Do
	// waits on. It makes every job
	// be timed, which costs three readings of the clock.
	OnDone func(Result)

	// OnPanic says what becomes of a job's panic.
	OnPanic PanicPolicy
}

// PanicPolicy says what becomes of a job's panic. It is never swallowed.
type PanicPolicy uint8

const (
	// Reraise raises a panic again where the job's end is waited for: in Do, in
	// Group.Wait. For a job that was only submitted, OnDone is told of a
	// *spillway.PanicError; without OnDone the process ends.
	Reraise PanicPolicy = iota
	// AsError makes a panic a *spillway.PanicError, with its stack, that Do and
	// Group.Wait return and OnDone is told of. Where no one is told, the process
	// ends.
	AsError
	// Crash ends the process, as a panic in a goroutine of its own does, with the
	// stack it happened on.
	Crash
)

// Result is the end of an accepted job.
type Result struct {
	// Context is what the job was submitted with, and says which job it was: put there
	// what tells it from others, such as a request's id.
	Context context.Context
	// Err is what the job returned; a *spillway.PanicError if it panicked;
	// ErrGoexit if it called runtime.Goexit; the context's error if that ended
	// before the job started; a *spillway.Rejection if it was dropped.
	Err     error
	Started bool
	Waited  time.Duration // from acceptance to the start, or to the end of a job that did not start
	Ran     time.Duration
}

const (
	defaultIdleTimeout  = 10 * time.Second
	defaultGrowCooldown = 500 * time.Millisecond
	defaultQueue        = 16384
	firstQueue          = 1024  // of a pool with a law, as long as nothing is known of its jobs
	mostWorkers         = 10000 // of a pool that finds out
)

func (cfg *Config) check() error {
	var wrong []error
	fault := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("workerpool: "+format, args...))
	}
	if err := checkWorkers(cfg.MinWorkers, cfg.MaxWorkers); err != nil {
		wrong = append(wrong, err)
	}
	if cfg.IdleTimeout < 0 {
		fault("IdleTimeout is %v: it cannot be negative (zero means %v)", cfg.IdleTimeout, defaultIdleTimeout)
	}
	if !(cfg.GrowAt >= 0 && cfg.GrowAt <= 1) {
		fault("GrowAt is %v: use a share of the queue above 0, at most 1 (0 means that a law decides)", cfg.GrowAt)
	}
	if cfg.GrowCooldown < 0 {
		fault("GrowCooldown is %v: it cannot be negative (zero means %v)", cfg.GrowCooldown, defaultGrowCooldown)
	}
	if cfg.Law != nil && isNil(cfg.Law) {
		fault("Law is a nil %T: look at the error of its constructor", cfg.Law)
	}
	if cfg.GrowAt > 0 && cfg.Law != nil {
		fault("GrowAt and Law are both set: only one of them can decide")
	}
	if cfg.GrowAt > 0 && cfg.QueueSize < 0 {
		fault("GrowAt is %v, but QueueSize %d means that nothing waits", cfg.GrowAt, cfg.QueueSize)
	}
	if cfg.GrowAt == 0 && cfg.GrowCooldown > 0 {
		fault("GrowCooldown is set without GrowAt, which it belongs to")
	}
	if cfg.OnPanic > Crash {
		fault("unknown OnPanic %d: use Reraise, AsError or Crash", cfg.OnPanic)
	}
	if len(wrong) == 0 && cfg.Law != nil && !limit.Claim(cfg.Law) {
		fault("Law belongs to another pool or limiter: make one for each")
	}
	return errors.Join(wrong...)
}

// isNil reports whether law is a nil pointer: what a constructor returns beside an
// error that was not looked at.
func isNil(law limit.Law) bool {
	r := reflect.ValueOf(law)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

func checkWorkers(least, most int) error {
	switch {
	case most < 0:
		return fmt.Errorf("workerpool: MaxWorkers is %d: it must be positive, or zero for the default", most)
	case least < 0:
		return fmt.Errorf("workerpool: MinWorkers is %d: it cannot be negative", least)
	case most > 0 && least > most:
		return fmt.Errorf("workerpool: MinWorkers %d is above MaxWorkers %d", least, most)
	case max(least, most) > math.MaxInt32:
		return fmt.Errorf("workerpool: %d workers are more than a pool can have (%d)", max(least, most), math.MaxInt32)
	}
	return nil
}

// complete fills in what the Config leaves open, and returns how often the pool
// looks at itself.
func (cfg *Config) complete() (between time.Duration) {
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, defaultIdleTimeout)
	cfg.GrowCooldown = cmp.Or(cfg.GrowCooldown, defaultGrowCooldown)
	return min(max(cfg.IdleTimeout/16, time.Millisecond), beat)
}

func (cfg *Config) queueSize() int {
	switch {
	case cfg.QueueSize != 0:
		return max(cfg.QueueSize, 0)
	case cfg.MaxWorkers > 0 && cfg.Law == nil && cfg.GrowAt == 0:
		return 5 * min(cfg.MaxWorkers, math.MaxInt/5)
	}
	return defaultQueue
}
