package compare

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway/load/loadgen"
)

// Load is what each block of a URL gets.
type Load struct {
	Rate    float64 // open loop, requests a second; or
	Clients int     // closed loop
	Block   time.Duration
	Timeout time.Duration
}

// URLMetrics are the figures of a URL, the usual one first.
var URLMetrics = []Metric{
	{Name: "p99", Unit: "ms"},
	{Name: "p50", Unit: "ms"},
	{Name: "mean", Unit: "ms"},
	{Name: "goodput", Unit: "/s", More: true},
	{Name: "errors", Unit: "%", Zero: true},
}

// of is the figure of a block. Latencies are those of the good answers; without one there
// is none. A timeout is an error.
func (m Metric) of(r *loadgen.Result) float64 {
	good := &r.Outcomes[loadgen.OK].Latency
	switch {
	case m.Name == "goodput":
		return r.Goodput()
	case m.Name == "errors" && r.Offered > r.Aborted:
		return 100 * (r.Share(loadgen.Error) + r.Share(loadgen.Timeout))
	case m.Name == "errors", good.Count() == 0:
		return math.NaN()
	case m.Name == "p99":
		return float64(good.Quantile(.99)) / 1e6
	case m.Name == "p50":
		return float64(good.Quantile(.5)) / 1e6
	}
	return good.Mean() / 1e6
}

// voidError says that the generator's machine ran out of something.
type voidError string

func (e voidError) Error() string { return string(e) }

// Blocks measures a target in blocks of load. doubt is called when the generator, and not
// the target, shaped a block.
func (l Load) Blocks(target loadgen.Target, m Metric, doubt func(why string)) (Measure, error) {
	if (l.Rate > 0) == (l.Clients > 0) || l.Rate < 0 || l.Clients < 0 {
		return nil, fmt.Errorf("say how much load: either --rate N (requests a second) or --clients N")
	}
	cfg := loadgen.Config{Target: target, Timeout: l.Timeout}
	if l.Clients > 0 {
		cfg.Closed = &loadgen.Closed{Clients: l.Clients, Duration: l.Block}
	} else {
		cfg.Open = loadgen.Constant(l.Rate, l.Block)
	}
	return func(ctx context.Context) (float64, error) {
		r, err := loadgen.Run(ctx, cfg)
		if err != nil {
			return math.NaN(), err
		}
		if void := r.Void(); void != "" {
			return math.NaN(), voidError(void)
		}
		if r.GeneratorBound {
			doubt(r.Why)
		}
		return m.of(r), nil
	}, nil
}
