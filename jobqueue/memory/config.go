package memory

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
	"github.com/spillway-go/spillway/limiter"
)

// Config sets the limits of a queue and how it runs its jobs. The payloads, keys and headers of all
// jobs together have at most 256 MiB. The zero value works.
type Config struct {
	// MaxQueued is the maximum number of jobs kept, including dead letters and running jobs. Zero
	// means 100,000.
	MaxQueued int
	// MaxPayload is the largest payload in bytes. Zero means 1 MiB.
	MaxPayload int

	// MaxInFlight is how many jobs run at once, over all queues that share the jobs. Zero means
	// 1,000.
	MaxInFlight int
	// AckWait is how long a handler may run without Progress before the job is given to
	// another worker. Zero means 30 seconds.
	AckWait time.Duration
	// Dedupe is how long a key is remembered. Zero means two minutes.
	Dedupe time.Duration
	// Policy sets how often and when a job is retried.
	Policy jobqueue.Policy

	// Limiter bounds the handlers of this queue. If it is nil, only MaxInFlight does.
	Limiter *limiter.Limiter
}

const (
	defaultQueued   = 100_000
	mostBytes       = 256 << 20 // of payloads, keys and headers
	defaultPayload  = 1 << 20
	defaultInFlight = 1000
	defaultAckWait  = 30 * time.Second
	defaultDedupe   = 2 * time.Minute
)

// filled returns the configuration with its defaults, or all its faults.
func (cfg Config) filled() (Config, error) {
	err := errors.Join(
		fill("MaxQueued", &cfg.MaxQueued, defaultQueued),
		fill("MaxPayload", &cfg.MaxPayload, defaultPayload), fill("MaxInFlight", &cfg.MaxInFlight, defaultInFlight),
		fill("AckWait", &cfg.AckWait, defaultAckWait), fill("Dedupe", &cfg.Dedupe, defaultDedupe),
		engine.Check(cfg.Policy))
	if err != nil {
		err = fmt.Errorf("memory: %w", err)
	}
	return cfg, err
}

// fill replaces zero with the default and rejects a negative value.
func fill[T int | time.Duration](name string, value *T, zero T) error {
	if *value < 0 {
		return fmt.Errorf("%s is %v: it must not be negative (zero means %v)", name, *value, zero)
	}
	*value = cmp.Or(*value, zero)
	return nil
}
