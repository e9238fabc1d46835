package admission

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// running is a service under load.
type running struct {
	*contestant.Process
	address string
	stop    context.CancelFunc
}

// start starts the service. The context that it returns ends with it: being killed is
// a result.
func (c Config) start(ctx context.Context, j job) (context.Context, *running, error) {
	var address string
	p, err := contestant.Start(ctx, contestant.Spec{Role: roleService, Input: j, MemoryCap: c.MemoryCap}, &address)
	if err != nil {
		return ctx, nil, err
	}
	loading, stop := context.WithCancel(ctx)
	go func() {
		select {
		case <-p.Done():
			stop()
		case <-loading.Done():
		}
	}()
	return loading, &running{p, address, stop}, nil
}

// end stops the service and completes run with what it reports.
func (r *running) end(ctx context.Context, j job, run *results.Run) (served, error) {
	r.stop()
	var report served
	exit, err := r.Stop(ctx, &report)
	if err != nil {
		return report, err
	}
	run.Killed, run.Process = exit.Killed, experiment.Process(report.Usage)
	run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
	run.Params = map[string]any{
		"backend": j.Backend, "slots": j.Work.Slots, "min_ms": ms(j.Work.Min), "max_ms": ms(j.Work.Max), "estimate": report.Estimate,
	}
	return report, ctx.Err()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// saturate measures the capacity: the most good answers a second in a closed loop
// without a limit, over several numbers of clients near the slots.
func (c Config) saturate(ctx context.Context, j job) (results.Run, error) {
	loading, srv, err := c.start(ctx, j)
	if err != nil {
		return results.Run{}, err
	}
	defer srv.stop()
	target, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: "http://" + srv.address + "/work"})
	if err != nil {
		return results.Run{}, err
	}
	defer target.Close()
	var best *loadgen.Result
	shares := []float64{1, 1.2, 1.4}
	for _, share := range shares {
		res, err := loadgen.Run(loading, loadgen.Config{
			Target: target, Interval: step,
			Closed: &loadgen.Closed{Clients: int(float64(j.Work.Slots)*share + .5), Duration: c.Measure / time.Duration(len(shares))},
		})
		if err != nil {
			return results.Run{}, err
		}
		if best == nil || res.Goodput() > best.Goodput() {
			best = res
		}
	}
	run := experiment.FromLoad(best)
	run.Extra = map[string]float64{"goodput": best.Goodput()}
	_, err = srv.end(ctx, j, &run)
	return run, err
}

// A run is repeated, at most once, if the generator sent so late that it measures a
// busy machine: what is sent late comes all at once. The one that sent less late
// counts.
const (
	tries   = 2
	mostLag = 20 * time.Millisecond // p99
)

func (c Config) storm(ctx context.Context, s scene, j job) (best results.Run, err error) {
	for n := 1; n <= tries; n++ {
		run, err := c.stormOnce(ctx, s, j)
		if err != nil || run.Killed != "" {
			return run, err
		}
		run.Params["try"] = n
		if n == 1 || late(run) < late(best) {
			best = run
		}
		if late(run) <= mostLag {
			break
		}
	}
	return best, nil
}

func late(r results.Run) time.Duration { return time.Duration(r.Lag.Quantile(.99)) }

// stormOnce measures the service in front of a crowd.
func (c Config) stormOnce(ctx context.Context, s scene, j job) (results.Run, error) {
	loading, srv, err := c.start(ctx, j)
	if err != nil {
		return results.Run{}, err
	}
	defer srv.stop()
	crowd, err := newCrowd(srv.address, s, j.Work)
	if err != nil {
		return results.Run{}, err
	}
	res, err := crowd.storm(loading, j.Work.Capacity(), s.stretches(c.WarmUp, c.Measure), j.Seed%1e6)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	report, err := srv.end(ctx, j, &run)
	if err != nil {
		return run, err
	}
	stats := crowd.stats()
	run.Elapsed = min(c.Measure, res.Elapsed).Seconds() // requests intended in this time, whenever they were answered
	run.Params["generator"] = res.Why
	run.Extra = map[string]float64{
		"goodput": float64(crowd.good.Load()) / run.Elapsed,
		"retries": float64(stats.Retries), "throttled": float64(stats.Throttled), "unpaid": float64(stats.Unpaid),
		"refused": float64(crowd.refused.Load()), "lag_ms": float64(res.Lag.Max()) / 1e6,
	}
	if n := crowd.criticalSent.Load(); n > 0 {
		run.Extra["critical"] = 100 * float64(crowd.criticalOK.Load()) / float64(n)
	}
	report.waves(&run, crowd.to)
	report.shares(&run, crowd.from, crowd.to)
	report.timeline(&run, crowd.from)
	return run, nil
}

// waves adds how many requests arrived in a step at most and on average, from the
// first refusal until then. The arrivals include retries.
func (s served) waves(run *results.Run, until time.Time) {
	var first time.Time
	for _, x := range s.Samples {
		if sum(x.Refused) > 0 {
			first = x.At
			break
		}
	}
	from, to := int(first.Sub(s.Began)/step), int(until.Sub(s.Began)/step)
	if first.IsZero() || from >= to || to > len(s.Arrivals) {
		return
	}
	var most, total uint32
	for _, n := range s.Arrivals[from:to] {
		most = max(most, n)
		total += n
	}
	if total > 0 {
		mean := float64(total) / float64(to-from)
		run.Extra["arrivals_mean"], run.Extra["arrivals_most"], run.Extra["wave"] = mean, float64(most), float64(most)/mean
	}
}

func sum(counts [priorities]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// priorityNames are the keys of the shares, lowest first.
var priorityNames = [priorities]string{"low", "normal", "high", "critical"}

// shares adds the share, in per cent, of each priority that was refused in that time
// or left while it waited, or would have been in a dry run; and what its report said at the end.
func (s served) shares(run *results.Run, from, to time.Time) {
	var first, last *sample
	for i := range s.Samples {
		x := &s.Samples[i]
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
	run.Extra["would"] = float64(sum(last.Would) - sum(first.Would))
	run.Extra["shed"] = float64(sum(last.Refused)) // since the start
	if last.Unsafe {
		run.Extra["unsafe"] = 1
	}
	for p, name := range priorityNames {
		if offered := last.Offered[p] - first.Offered[p]; offered > 0 {
			shed := last.Refused[p] - first.Refused[p] + last.Would[p] - first.Would[p] + last.Left[p] - first.Left[p]
			run.Extra["share_"+name] = 100 * float64(shed) / float64(offered)
		}
	}
}

// timeline adds the service's samples to the load's time line.
func (s served) timeline(run *results.Run, began time.Time) {
	i := 0
	for k := range run.Series {
		for i < len(s.Samples) && s.Samples[i].At.Sub(began).Seconds() < run.Series[k].At {
			i++
		}
		if i == len(s.Samples) {
			return
		}
		x := s.Samples[i]
		run.Series[k].Limit, run.Series[k].InFlight, run.Series[k].Queued = x.Limit, x.InFlight, x.Queued
	}
}
