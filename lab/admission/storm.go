package admission

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/loadgen"
)

// mostLag is the p99 of the send lag above which a run is made again.
const mostLag = 20 * time.Millisecond

// saturate measures the capacity, without a limit.
func (c Config) saturate(ctx context.Context, j service.Job) (results.Run, error) {
	loading, srv, err := c.start(ctx, j)
	if err != nil {
		return results.Run{}, err
	}
	target, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: "http://" + srv.Address + "/work"})
	if err != nil {
		return results.Run{}, err
	}
	defer target.Close()
	best, err := service.Saturate(loading, target, j.Work.Slots, c.Time, 0)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(best)
	run.Extra = map[string]float64{"goodput": best.Goodput()}
	_, err = srv.End(ctx, &run, time.Now())
	return run, err
}

// storm measures the service in front of a crowd.
func (c Config) storm(ctx context.Context, s scene, j service.Job) (results.Run, error) {
	loading, srv, err := c.start(ctx, j)
	if err != nil {
		return results.Run{}, err
	}
	load := s.load(c)
	load.Seed = j.Seed
	crowd, err := newCrowd(srv.Address, s, j.Work)
	if err != nil {
		return results.Run{}, err
	}
	res, err := crowd.storm(loading, load)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Elapsed = c.Time.Seconds() // the requests are those intended in this time
	served, err := srv.End(ctx, &run, crowd.from)
	stats := crowd.stats()
	run.Params = map[string]any{"generator": res.Why, "estimate": served.Says}
	run.Extra = map[string]float64{
		"goodput": float64(crowd.good.Load()) / run.Elapsed, "refused": float64(crowd.refused.Load()), "lag_ms": float64(res.Lag.Max()) / 1e6,
		"retries": float64(stats.Retries), "throttled": float64(stats.Throttled), "unpaid": float64(stats.Unpaid),
	}
	if n := crowd.criticalSent.Load(); n > 0 {
		run.Extra["critical"] = 100 * float64(crowd.criticalOK.Load()) / float64(n)
	}
	waves(run.Extra, served, crowd.to)
	shares(run.Extra, served.Samples, crowd.from, crowd.to)
	return run, err
}

// waves adds how many requests arrived in a step at most and on average, from the
// first refusal until then. The arrivals include retries.
func waves(extra map[string]float64, s service.Served, until time.Time) {
	for _, x := range s.Samples {
		if total(x, func(p limiter.PriorityStats) uint64 { return p.Rejected }) == 0 {
			continue
		}
		from, to := int(x.At.Sub(s.Began)/service.Step), int(until.Sub(s.Began)/service.Step)
		if from >= to || to > len(s.Arrivals) {
			return
		}
		most, sum := 0.0, 0.0
		for _, n := range s.Arrivals[from:to] {
			most, sum = max(most, float64(n)), sum+float64(n)
		}
		if mean := sum / float64(to-from); mean > 0 {
			extra["arrivals_mean"], extra["arrivals_most"], extra["wave"] = mean, most, most/mean
		}
		return
	}
}

func total(s service.Sample, count func(limiter.PriorityStats) uint64) (n float64) {
	for _, p := range s.ByPriority {
		n += float64(count(p))
	}
	return n
}

// shares adds the share, in per cent, of each priority that was refused in that time or
// left while it waited, or would have been in a dry run; what was refused since the start;
// and whether the dry run's report said at the end that its estimate is unsafe.
func shares(extra map[string]float64, samples []service.Sample, from, to time.Time) {
	var first, last *service.Sample
	for i := range samples {
		x := &samples[i]
		if first == nil && !x.At.Before(from) {
			first = x
		}
		if x.At.Before(to) {
			last = x
		}
	}
	if first == nil || last == nil {
		return
	}
	would := func(p limiter.PriorityStats) uint64 { return p.WouldReject }
	extra["would"] = total(*last, would) - total(*first, would)
	extra["shed"] = total(*last, func(p limiter.PriorityStats) uint64 { return p.Rejected })
	extra["unsafe"] = 0
	if last.Unsafe {
		extra["unsafe"] = 1
	}
	for p, b := range last.ByPriority {
		a := first.ByPriority[p]
		if offered := b.Offered - a.Offered; offered > 0 {
			shed := b.Rejected - a.Rejected + b.WouldReject - a.WouldReject + b.Cancelled - a.Cancelled
			extra["share_"+p.String()] = 100 * float64(shed) / float64(offered)
		}
	}
}
