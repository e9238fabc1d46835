package simulated

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/gauge"
)

// Config says what Inject adds. The zero value adds nothing.
type Config struct {
	MinLatency, MaxLatency time.Duration // each call takes a uniform time between them
	ErrorRate              float64       // share of calls that fail, from 0 to 1
	Seed                   uint64        // of the draws
}

// Injected is a store with added latency and failures. Call number n gets the
// n-th draw of the seed, in whatever goroutine. A call waits first and then fails or
// asks the store beneath; the wait ends with its context. A batch, like a page, is one call.
type Injected struct {
	patientapi.Store
	cfg     Config
	calls   atomic.Uint64
	failed  atomic.Uint64
	drawn   atomic.Int64 // sum of latencies, nanoseconds
	ongoing gauge.Gauge
}

// Inject returns store with what cfg adds. The error says which setting is
// wrong.
func Inject(store patientapi.Store, cfg Config) (*Injected, error) {
	switch {
	case cfg.MinLatency < 0:
		return nil, fmt.Errorf("min-latency is %v: it cannot be negative", cfg.MinLatency)
	case cfg.MaxLatency < cfg.MinLatency:
		return nil, fmt.Errorf("min-latency %v is above max-latency %v: swap them, or raise max-latency", cfg.MinLatency, cfg.MaxLatency)
	case !(cfg.ErrorRate >= 0 && cfg.ErrorRate <= 1):
		return nil, fmt.Errorf("error-rate is %v: want a share from 0 to 1, such as 0.05", cfg.ErrorRate)
	}
	s := &Injected{cfg: cfg}
	s.Store = patientapi.Around(store, s.around)
	return s, nil
}

// around asks a question when its latency is over, unless it fails.
func (s *Injected) around(ctx context.Context, _ patientapi.Question, ask func(context.Context) error) error {
	s.ongoing.Enter()
	defer s.ongoing.Leave()
	if err := s.delay(ctx); err != nil {
		return err
	}
	return ask(ctx)
}

// delay waits for the call's latency and returns its failure.
func (s *Injected) delay(ctx context.Context) error {
	latency, fails := s.cfg.draw(s.calls.Add(1) - 1)
	s.drawn.Add(int64(latency))
	if latency > 0 {
		timer := time.NewTimer(latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fails {
		s.failed.Add(1)
		return fmt.Errorf("%w (injected)", patientapi.ErrUnavailable)
	}
	return ctx.Err()
}

// draw returns what call number n gets.
func (c Config) draw(n uint64) (latency time.Duration, fails bool) {
	share := func(salt uint64) float64 { return float64(mix(mix(c.Seed^salt)+n)>>11) / (1 << 53) }
	latency = c.MinLatency + time.Duration(share(1)*float64(c.MaxLatency-c.MinLatency))
	return latency, share(2) < c.ErrorRate
}

// mix is the finalizer of SplitMix64: neighbouring inputs give unrelated outputs.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Calls returns how many calls were made.
func (s *Injected) Calls() uint64 { return s.calls.Load() }

// Failures returns how many calls were made to fail.
func (s *Injected) Failures() uint64 { return s.failed.Load() }

// PeakCalls returns the most calls that were under way at one time.
func (s *Injected) PeakCalls() int { return s.ongoing.Peak() }

// MeanLatency returns the mean of the latencies drawn, 0 before the first call.
func (s *Injected) MeanLatency() time.Duration {
	if n := s.calls.Load(); n > 0 {
		return time.Duration(s.drawn.Load() / int64(n))
	}
	return 0
}
