package workerpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// Config configures a Pool. The zero value works.
type Config struct {
	// Name labels this pool in metrics, reports and profiles.
	Name string

	// MinWorkers is how many workers stay when idle; the limit on running jobs never falls below
	// it. MaxWorkers is the most jobs that run at once, and bounds nothing else; zero means 10,000.
	// Workers start when a job needs one.
	//
	// Within these bounds, Law or GrowAt decides how many jobs may run at once. Without Law and
	// GrowAt, a set MaxWorkers is the limit itself. If MaxWorkers is zero too, the pool uses a law
	// of its own, and the limit never falls below GOMAXPROCS.
	MinWorkers, MaxWorkers int

	// Law decides how many jobs run at once. Nil means limit.NewAdaptiveForThroughput, unless
	// MaxWorkers or GrowAt is set. The pool owns the law: one value serves one pool. The pool calls
	// the law on its own goroutines, so a panic of a custom law ends the process.
	Law limit.Law

	// QueueSize is how many accepted jobs may wait for a worker. Negative means none: a job is
	// accepted only when a worker takes it at once. Zero means 16,384, or 5 times MaxWorkers if
	// MaxWorkers is set without Law and GrowAt. If QueueSize is zero and a law decides, the queue
	// starts at 1,024 places, and grows while the pool works it off within a tenth of a second.
	//
	// QueueSize bounds memory. While arrivals exceed capacity, the pool keeps the queue shorter, so
	// that a wait stays within the run time of a job. Only a pool with both MaxWorkers and
	// QueueSize set, and neither Law nor GrowAt, fills its queue regardless.
	QueueSize int

	// MaxWait bounds how long Submit and Do wait for room in a full queue. Zero means as long as
	// the context allows. Negative means no wait, as with TrySubmit.
	MaxWait time.Duration

	// IdleTimeout is how long a worker above MinWorkers stays without a job,
	// give or take a sixteenth. Zero means 10 seconds.
	IdleTimeout time.Duration

	// GrowAt makes the pool grow by a rule instead of a law. The limit starts at MinWorkers, at
	// least one. The limit rises by a quarter, up to MaxWorkers, when the queue is filled to the
	// share GrowAt (above 0, at most 1) of its room. When workers retire, the limit falls to the
	// number of remaining workers.
	GrowAt float64
	// GrowCooldown is the least time between two rises by GrowAt. Zero means 500 ms.
	GrowCooldown time.Duration

	// OnDone is called at the end of every accepted job, on the goroutine that ended the job. While
	// OnDone runs, that worker takes no other job, and a caller of Do keeps waiting. OnDone makes
	// the pool time every job, which costs three clock reads.
	OnDone func(Result)

	// PanicsAsErrors makes Do return a panic of its function as a *spillway.PanicError with the
	// stack. Otherwise Do raises the panic again in its caller. The panic of a job that was only
	// submitted is never swallowed: OnDone receives a *spillway.PanicError, and without OnDone the
	// process ends.
	PanicsAsErrors bool
}

// Result is the end of an accepted job.
type Result struct {
	// Context is the context that the job was submitted with. Context identifies the job: put a
	// distinguishing value into it, such as a request ID.
	Context context.Context
	// Err is the error that the job returned; a *spillway.PanicError if the job panicked; ErrGoexit
	// if the job called runtime.Goexit; the context's error if the context ended before the job
	// started; a *spillway.Rejection if the job was dropped.
	Err     error
	Started bool
	Waited  time.Duration // from submission to the start, or to the end of a job that did not start
	Ran     time.Duration
}

const (
	defaultIdleTimeout  = 10 * time.Second
	defaultGrowCooldown = 500 * time.Millisecond
	defaultQueue        = 16384
	firstQueue          = 1024  // queue of a pool with a law, before the first measurement
	mostWorkers         = 10000 // default of MaxWorkers
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
	if len(wrong) == 0 && cfg.Law != nil && !laws.Claim(cfg.Law) {
		fault("Law belongs to another pool or limiter: make one for each")
	}
	return errors.Join(wrong...)
}

// isNil reports whether law is a nil pointer, such as a constructor returns with an error.
func isNil(law limit.Law) bool {
	r := reflect.ValueOf(law)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

func checkWorkers(low, most int) error {
	switch {
	case most < 0:
		return fmt.Errorf("workerpool: MaxWorkers is %d: it must be positive, or zero for the default", most)
	case low < 0:
		return fmt.Errorf("workerpool: MinWorkers is %d: it cannot be negative", low)
	case most > 0 && low > most:
		return fmt.Errorf("workerpool: MinWorkers %d is above MaxWorkers %d", low, most)
	case max(low, most) > math.MaxInt32:
		return fmt.Errorf("workerpool: %d workers are more than a pool can have (%d)", max(low, most), math.MaxInt32)
	}
	return nil
}

// complete fills in the defaults of cfg, and returns the interval between looks of the pool.
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
