package loadgen

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/spillway-go/spillway"
)

// Outcome is the result of one request: OK, Rejected, Error or Timeout. Results keep
// the outcomes apart, each with its own latencies: a refusal in 50 µs must not lower the latency of answers.
type Outcome uint8

const (
	OK       Outcome = iota // answered successfully
	Rejected                // refused before it was tried: load was shed
	Error                   // tried and failed
	Timeout                 // no answer within the time allowed
	outcomes                // number of outcomes
)

var outcomeNames = [outcomes]string{"ok", "rejected", "error", "timeout"}

// Outcomes returns every outcome, in the order in which reports list them.
func Outcomes() []Outcome { return []Outcome{OK, Rejected, Error, Timeout} }

// String returns "ok", "rejected", "error" or "timeout".
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// FromError returns the outcome that err stands for: OK for nil, Rejected for
// anything that matches [spillway.ErrRejected], Timeout for a passed deadline,
// Error for the rest.
func FromError(err error) Outcome {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, spillway.ErrRejected):
		return Rejected
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Error
}

// Target receives the load. Do sends request n and returns when its outcome is known; many
// goroutines call Do concurrently. Numbers start at 0, are used once each and may arrive out of
// order. ctx ends when Config.Timeout has passed or the run is over: a target that ignores ctx
// keeps Run from returning.
//
// A panic in Do stops the run and is raised again, with its original value, in
// the goroutine that called Run. So does runtime.Goexit.
type Target interface {
	Do(ctx context.Context, n uint64) Outcome
}

// TargetFunc is a function as a Target.
type TargetFunc func(ctx context.Context, n uint64) Outcome

// Do calls f.
func (f TargetFunc) Do(ctx context.Context, n uint64) Outcome { return f(ctx, n) }

// Closed is a closed loop: each client sends its next request when the last one
// is answered. Requests, Duration or both bound it, whichever ends first.
type Closed struct {
	Clients  int           // number of concurrent clients
	Requests uint64        // total; each client has its own quota, the first clients take the remainder. 0: no bound
	Duration time.Duration // no request is sent after Duration. 0: no bound
}

// Config describes the load and its target. Target and one of Closed and Open must be set.
type Config struct {
	Target Target

	// Timeout is the time from the sending of a request to the end of its context. A later answer
	// is a Timeout, whatever outcome the target returns, so a target that ignores its context is
	// judged like the others. 0: no timeout, and the same context for every request. A timeout
	// costs a few allocations a request.
	Timeout time.Duration

	Closed *Closed  // closed loop
	Open   Schedule // open loop: requests start by schedule, whether or not earlier ones have ended

	// MaxInFlight bounds the requests of an open loop that are in flight at one time; 0: 10,000. At
	// the bound a request waits for a place. The latency of a waiting
	// request still counts from the intended start, and the result reports that the generator was
	// the bottleneck.
	MaxInFlight int

	// Progress is called every Interval and once at the end, always from the
	// goroutine that called Run.
	Progress func(Snapshot)
	Interval time.Duration // interval of Progress and of Result.Series; 0: 1 s
}

const (
	defaultInFlight = 10_000
	defaultInterval = time.Second

	// grace is how long requests in flight may go on after ctx has ended.
	grace = time.Second
)

// Check returns the error that Run would return at once, or nil.
func (cfg Config) Check() error {
	_, err := cfg.check()
	return err
}

// check returns cfg with its defaults, or an error.
func (cfg Config) check() (Config, error) {
	if cfg.Target == nil {
		return cfg, errors.New("loadgen: no Target: set a TargetFunc or an *HTTP")
	}
	if (cfg.Closed == nil) == (cfg.Open == nil) {
		return cfg, errors.New("loadgen: set either Closed (clients) or Open (a schedule)")
	}
	if c := cfg.Closed; c != nil {
		switch {
		case c.Clients < 1:
			return cfg, fmt.Errorf("loadgen: %d clients: want at least 1", c.Clients)
		case c.Duration < 0:
			return cfg, fmt.Errorf("loadgen: a duration of %v: want more than 0", c.Duration)
		case c.Requests == 0 && c.Duration == 0:
			return cfg, errors.New("loadgen: a closed loop needs Requests, Duration or both")
		}
	}
	if s, ok := cfg.Open.(interface{ check() error }); ok {
		if err := s.check(); err != nil {
			return cfg, err
		}
	}
	switch {
	case cfg.Timeout < 0:
		return cfg, fmt.Errorf("loadgen: a timeout of %v: want more than 0, or 0 for none", cfg.Timeout)
	case cfg.MaxInFlight < 0:
		return cfg, fmt.Errorf("loadgen: at most %d in flight: want at least 1, or 0 for %d", cfg.MaxInFlight, defaultInFlight)
	case cfg.Interval != 0 && cfg.Interval < time.Millisecond:
		return cfg, fmt.Errorf("loadgen: an interval of %v: want at least 1ms, or 0 for %v", cfg.Interval, defaultInterval)
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = defaultInFlight
	}
	if cfg.Interval == 0 {
		cfg.Interval = defaultInterval
	}
	return cfg, nil
}

// Run sends the load and returns the measured result. Run returns when every request has its
// outcome, and in an open loop not before the end of the schedule. The only errors are those of
// cfg, before anything is sent.
//
// When ctx ends, nothing more is sent. Requests in flight have a second to finish; then their
// contexts are cancelled too. The result holds all measurements until then, and is marked as
// Partial. Requests that were cut off are counted as Aborted and in no outcome.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	r := newRun(ctx, cfg)
	done := make(chan struct{})
	if cfg.Closed != nil {
		r.closedLoop()
	} else {
		r.openLoop()
	}
	go func() {
		r.goroutines.Wait()
		close(done)
	}()
	defer func() { // has an effect only if Progress did not return
		r.stop()
		r.cut()
		<-done
	}()
	r.supervise(ctx, done)
	if f := r.fault; f != nil {
		if f.goexit {
			runtime.Goexit()
		}
		panic(f.value)
	}
	if cfg.Progress != nil {
		cfg.Progress(r.snapshot())
	}
	return r.result(), nil
}
