// Package capacity finds the knee of a service: the highest rate of arrivals, by schedule
// and whatever the answers take, at which its answers keep an SLO.
//
// Search decides what to try next and is pure. Run measures it with package loadgen. The
// service needs none of our code: what is known of it is its answers. Refusals (429, 503)
// are missing from the goodput and are in no latency. Where the assumptions behind a knee
// do not hold, Result.Doubts says so.
package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/load/usage"
)

// Config says what to search where.
type Config struct {
	Target  loadgen.Target
	SLO     SLO
	MaxRate float64       // nothing is offered above it, requests a second
	Time    time.Duration // for the whole search
	Timeout time.Duration // of one request; 0: Patience(SLO)
	Random  bool          // random gaps between requests instead of even ones
	Seed    uint64        // of the gaps
	Traffic float64       // to plan replicas for; 0: none

	Progress func(Probe, loadgen.Snapshot) // many times a second
	Done     func(Point)                   // after each probe, those that wait for latency to be back left out
}

// Patience is how long a request may take unless Config says otherwise: long enough to
// tell a late answer from none, short enough that an overload drains soon.
func Patience(slo SLO) time.Duration { return max(2*time.Second, 4*slo.widest()) }

func (c Config) check() error {
	switch {
	case !(c.MaxRate > 0 && c.MaxRate <= 1e6):
		return fmt.Errorf("the largest rate is %v: want requests a second, more than 0 and at most 1,000,000", c.MaxRate)
	case c.Time < 10*time.Second:
		return fmt.Errorf("the time is %v: want at least 10s", c.Time)
	case c.Timeout < 0:
		return errors.New("the timeout cannot be negative")
	case !(c.Traffic >= 0) || math.IsInf(c.Traffic, 1):
		return fmt.Errorf("the traffic is %v: want requests a second", c.Traffic)
	}
	return nil
}

// Run searches. When ctx ends it returns what was found until then. The only errors are
// those of c, before anything is sent.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Timeout == 0 {
		c.Timeout = Patience(c.SLO)
	}
	search := &Search{Setup: Setup{SLO: c.SLO, Max: c.MaxRate, Time: c.Time - min(c.Timeout, c.Time/20)}}
	for seed := c.Seed; ; seed++ {
		probe, more := search.Next()
		if !more {
			break
		}
		began := time.Now()
		r, err := c.load(ctx, probe, seed)
		if err != nil {
			return nil, err
		}
		if r.Partial || ctx.Err() != nil {
			search.Interrupt()
			break
		}
		if void := r.Void(); void != "" {
			search.Exhaust(void)
			break
		}
		p := c.point(probe, r)
		search.Add(p, time.Since(began))
		if c.Done != nil && probe.Purpose != Settle {
			c.Done(search.points[len(search.points)-1])
		}
	}
	return search.Result(c.Traffic), nil
}

// steps of a probe's time line: few enough that each has requests, and a multiple of the
// quarters.
const steps = 10 * quarters

func (c Config) load(ctx context.Context, probe Probe, seed uint64) (*loadgen.Result, error) {
	cfg := loadgen.Config{
		Target: c.Target, Timeout: c.Timeout, Interval: probe.For / steps,
		Open:        loadgen.Constant(probe.Rate, probe.For),
		MaxInFlight: c.mostInFlight(probe.Rate),
	}
	if c.Random {
		cfg.Open = loadgen.Poisson(probe.Rate, probe.For, seed)
	}
	if c.Progress != nil {
		cfg.Progress = func(s loadgen.Snapshot) { c.Progress(probe, s) }
	}
	return loadgen.Run(ctx, cfg)
}

// mostInFlight is what a service that answers nothing would reach before the timeout, as
// far as this process can have the connections and the memory for them.
func (c Config) mostInFlight(rate float64) int {
	files := max(usage.OpenFiles()-64, 16) // the rest is for everything else
	return int(min(math.Ceil(rate*c.Timeout.Seconds())+16, float64(files), 10_000))
}

// point is what a probe's load measured.
func (c Config) point(probe Probe, r *loadgen.Result) Point {
	p := Point{
		Rate: probe.Rate, Seconds: probe.For.Seconds(),
		Rejected: r.Outcomes[loadgen.Rejected].Count,
		Failed:   r.Outcomes[loadgen.Error].Count + r.Outcomes[loadgen.Timeout].Count,
	}
	p.latencies(&r.Outcomes[loadgen.OK].Latency, c.SLO)
	inFlight, most, good := 0.0, 0.0, 0.0
	for i := range min(steps, len(r.Series)) {
		step := &r.Series[i]
		inFlight += float64(step.Sent)
		for _, n := range step.Outcomes {
			inFlight -= float64(n)
		}
		most = max(most, inFlight)
		p.InFlight[i*quarters/steps] += inFlight * quarters / steps
		if i >= steps/quarters {
			good += float64(step.Outcomes[loadgen.OK])
		}
	}
	p.Goodput = good / (p.Seconds * (quarters - 1) / quarters)
	if c.late(probe, r, most) {
		p.Late = r.Why
	}
	return p
}

// late reports whether the generator's own lateness explains broken latencies: it is most
// of them, near to what the SLO allows, and not a consequence of so many unanswered requests
// that the SLO is broken anyway.
func (c Config) late(probe Probe, r *loadgen.Result, mostInFlight float64) bool {
	bound, ok := c.SLO.strictest()
	if !ok || !r.GeneratorBound || mostInFlight >= probe.Rate*bound.Seconds() {
		return false
	}
	var all float64
	for _, o := range loadgen.Outcomes() {
		all += r.Outcomes[o].Latency.Sum() / float64(max(r.Offered, 1))
	}
	return r.Lag.Mean() > all/2 && slices.ContainsFunc(c.SLO.Latency, func(b Bound) bool { return r.Lag.Quantile(b.Quantile) > int64(b.At)/2 })
}
