// Package app wires the patient service together: store, pattern, callers, audit,
// traces, listeners, shutdown and report. Command is its command line, for kong, and
// TokenCommand and AuditCommand are those of the tools beside it.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/limiter"
	process "github.com/spillway-go/spillway/load/usage"
)

// ErrUsage is matched by errors that the user can mend by another command line
// or another place: a program that gets one exits with 2.
var ErrUsage = errors.New("bad input")

type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error      { return e.error }

// usage marks err as the user's to mend.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// cache is what remembers clinicians.
type cache interface {
	directory.ClinicianCache
	io.Closer
}

// Run serves until ctx ends, then stops intake, finishes what is under way and
// reports on stdout; progress and logs go to stderr. An error that matches
// ErrUsage left nothing behind. A shutdown that ran out of time is an error
// after the report.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) error {
	return c.serve(ctx, stdout, stderr, time.Sleep)
}

func (c *Command) serve(ctx context.Context, stdout, stderr io.Writer, notice func(time.Duration)) error {
	if err := c.check(); err != nil {
		return err
	}
	s := &service{cmd: c, notice: notice, logger: slog.New(slog.NewTextHandler(stderr, nil))}
	if c.JSON {
		s.logger = slog.New(slog.NewJSONHandler(stderr, nil))
	}
	defer s.close()
	if err := s.open(ctx, stderr); err != nil {
		return err
	}
	return s.run(ctx, stdout)
}

// check finds what can be found wrong before anything is touched.
func (c *Command) check() error {
	if err := c.checkStore(); err != nil {
		return err
	}
	if err := c.checkTimes(); err != nil {
		return err
	}
	switch {
	case c.Store.Patients < 1 || c.Store.Patients > patientapi.MaxPatients:
		return usagef("patients is %d: want 1 to %d", c.Store.Patients, patientapi.MaxPatients)
	case c.Cache.TTL < time.Millisecond:
		return usagef("cache-ttl is %v: want 1ms or more", c.Cache.TTL)
	case c.Cache.Timeout <= 0:
		return usagef("cache-timeout is %v: want more than 0; --cache none does without a cache", c.Cache.Timeout)
	case c.Listen.MaxConnections < 1:
		return usagef("max-connections is %d: want at least 1", c.Listen.MaxConnections)
	}
	if _, err := c.FHIR.check(); err != nil {
		return err
	}
	if _, err := c.adminAddr(); err != nil {
		return err
	}
	if err := errors.Join(c.Auth.check(), c.TLS.check(), c.Audit.check(), c.checkExports(), c.checkTraces()); err != nil {
		return err
	}
	if err := c.hidesPassword(os.Args); err != nil {
		return err
	}
	cache, err := c.openCache()
	if err != nil {
		return err
	}
	if cache != nil {
		_ = cache.Close()
	}
	// The parts know their own rules; a store of one patient is quick to make.
	probe, err := simulated.New(1, 0)
	if err != nil {
		return err
	}
	if _, err := simulated.Inject(probe, c.injection()); err != nil {
		return usage(err)
	}
	_, err = c.runner(nil)
	return err
}

// checkTimes finds those that are negative.
func (c *Command) checkTimes() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"timeout", c.Deadline.Timeout}, {"critical-deadline", c.Deadline.Critical}, {"normal-deadline", c.Deadline.Normal}, {"bulk-deadline", c.Deadline.Bulk},
		{"shutdown-timeout", c.Shutdown.Timeout}, {"drain-delay", c.Shutdown.DrainDelay},
	} {
		if d.value < 0 {
			return usagef("%s is %v: it cannot be negative", d.name, d.value)
		}
	}
	return nil
}

func (c *Command) injection() simulated.Config {
	return simulated.Config{MinLatency: c.Faults.MinLatency, MaxLatency: c.Faults.MaxLatency, ErrorRate: c.Faults.ErrorRate, Seed: c.Store.Seed}
}

// runner makes the pattern. Making one starts nothing.
func (c *Command) runner(logger *slog.Logger, signals ...limiter.Signal) (*patterns.Runner, error) {
	p := c.Pattern
	runner, err := patterns.New(p.Name, patterns.Config{Workers: p.Workers, QueueSize: p.QueueSize, QueueWait: p.QueueWait, Mode: p.Mode, SlowStart: p.SlowStart, Signals: signals, Logger: logger})
	return runner, usage(err)
}

// Report is what a run amounted to.
type Report struct {
	Pattern  string         `json:"pattern"`
	Store    string         `json:"store"`
	Requests front.Outcomes `json:"requests"`
	Runner   patterns.Stats `json:"runner"`
	Process  process.Usage  `json:"process"` // from ready to drained

	StoreCalls       uint64                  `json:"store_calls"`
	StoreFailures    uint64                  `json:"store_failures"` // injected
	StoreMeanLatency float64                 `json:"store_mean_latency_seconds"`
	PeakStoreCalls   int                     `json:"peak_store_calls"`
	Connections      *patientapi.Connections `json:"connections,omitempty"`
	Clinicians       directory.Stats         `json:"clinicians"`

	Audit *audit.Stats `json:"audit,omitempty"`

	// Abandoned says what was left undone when the shutdown timeout ended; empty
	// when everything was finished.
	Abandoned string `json:"abandoned,omitempty"`
}

// Ready is the first line of a run with JSON.
type Ready struct {
	Ready bool   `json:"ready"`
	Addr  string `json:"addr"`
	Admin string `json:"admin,omitempty"` // address of the admin listener
	PID   int    `json:"pid"`
}
