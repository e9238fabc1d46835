package memory

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/limiter"
)

// Config says how large a queue may become and what it does with its jobs. The zero
// value works.
type Config struct {
	// MaxQueued is how many jobs are kept, dead letters and those that run among them.
	// Zero means 100,000.
	MaxQueued int
	// MaxBytes is how much their payloads, keys and headers may take. Zero means 256 MiB.
	MaxBytes int
	// MaxPayload is the largest payload in bytes. Zero means 1 MiB.
	MaxPayload int

	// MaxInFlight is how many jobs run at once, over all queues that share the jobs. Zero
	// means 1,000.
	MaxInFlight int
	// AckWait is how long a handler may run without Progress before the job is given to
	// another worker. Zero means 30 seconds.
	AckWait time.Duration
	// Dedupe is for how long a key is remembered. Zero means two minutes.
	Dedupe time.Duration
	// Policy says how often a job is tried, and when.
	Policy jobqueue.Policy

	// Limiter bounds the handlers of this queue; nil means that only MaxInFlight does.
	Limiter *limiter.Limiter
}

const (
	defaultQueued   = 100_000
	defaultBytes    = 256 << 20
	defaultPayload  = 1 << 20
	defaultInFlight = 1000
	defaultAckWait  = 30 * time.Second
	defaultDedupe   = 2 * time.Minute
)

// filled is the configuration with its defaults, or all that is wrong with it.
func (cfg Config) filled() (Config, error) {
	err := errors.Join(
		fill("MaxQueued", &cfg.MaxQueued, defaultQueued), fill("MaxBytes", &cfg.MaxBytes, defaultBytes),
		fill("MaxPayload", &cfg.MaxPayload, defaultPayload), fill("MaxInFlight", &cfg.MaxInFlight, defaultInFlight),
		fill("AckWait", &cfg.AckWait, defaultAckWait), fill("Dedupe", &cfg.Dedupe, defaultDedupe),
		cfg.Policy.Check())
	if err != nil {
		err = fmt.Errorf("memory: %w", err)
	}
	return cfg, err
}

// fill replaces zero.
func fill[T int | time.Duration](name string, value *T, zero T) error {
	if *value < 0 {
		return fmt.Errorf("%s is %v: it must not be negative (zero means %v)", name, *value, zero)
	}
	*value = cmp.Or(*value, zero)
	return nil
}
