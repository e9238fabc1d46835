package admission

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp/client"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// scene is one kind of crowd.
type scene struct {
	multiple float64       // of the capacity, sent by all
	deadline time.Duration // of each request, its retries included
	retries  bool          // by client.Transport; else each request is sent once
	leavers  bool          // every third client leaves after half of the service time
	ramps    bool          // they come slowly
}

var scenes = map[string]scene{
	storm:   {multiple: 3, deadline: 5 * time.Second, retries: true},
	leavers: {multiple: 3, deadline: 5 * time.Second, retries: true, leavers: true},
	dryrun:  {multiple: 2, deadline: time.Second, ramps: true},
	hostile: {multiple: .5, deadline: 2 * time.Second}, // of the known clients
	holders: {multiple: .2, deadline: time.Second},     // of the lookups
}

// tail is how long the load goes on after the measurement, or as long as that was, so
// that what was sent within it meets the same storm when it is retried.
const tail = 2 * time.Second

// load is the warm-up, the measurement and the tail. A crowd that ramps comes slowly, over
// four times the warm-up: an estimate that is made without refusing anything needs to
// have seen the backend calm.
func (s scene) load(c Config) service.Load {
	const steps, least = 10, .3
	full := s.multiple * c.Capacity()
	warm := []service.Stretch{{Rate: full, For: c.WarmUp}}
	if s.ramps {
		warm = nil
		for i := range steps {
			warm = append(warm, service.Stretch{Rate: (least + (s.multiple-least)*float64(i)/steps) * c.Capacity(), For: 4 * c.WarmUp / steps})
		}
	}
	return service.Load{Measured: len(warm), Stretches: append(warm, service.Stretch{Rate: full, For: c.Time}, service.Stretch{Rate: full, For: min(tail, c.Time)})}
}

// clientCount is how many clients there are, each with a budget and a memory of its
// own.
const clientCount = 200

// crowd is the clients: an open loop, in which each request is the next client's.
type crowd struct {
	scene
	url        string
	patience   time.Duration // of those that leave
	base       *http.Transport
	transports []*client.Transport
	from, to   time.Time // the time in which answers count

	good                     atomic.Uint64 // answers in that time, to those that stay
	criticalSent, criticalOK atomic.Uint64 // of the requests that count
	refused                  atomic.Uint64 // answers 503 and 429 that a client got in the end
}

func newCrowd(address string, s scene, work service.Work) (*crowd, error) {
	c := &crowd{
		scene: s, url: "http://" + address + "/work", patience: (work.Min + work.Max) / 4,
		base: &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: 2000},
	}
	config := client.Config{Base: c.base}
	if !s.retries {
		config.Attempts, config.Tolerance = 1, math.Inf(1)
	}
	for range clientCount {
		t, err := client.New(config)
		if err != nil {
			return nil, err
		}
		c.transports = append(c.transports, t)
	}
	return c, nil
}

// priorityOf gives every client a fifth of critical and a fifth of low requests.
func priorityOf(n uint64) spillway.Priority {
	switch (n/clientCount + n) % 5 {
	case 0:
		return spillway.Critical
	case 1:
		return spillway.Low
	}
	return spillway.Normal
}

func (c *crowd) do(ctx context.Context, n uint64, counts bool) loadgen.Outcome {
	p, leaves := priorityOf(n), c.leavers && n%clientCount%3 == 0
	ctx, cancel := context.WithTimeout(spillway.WithPriority(ctx, p), c.deadline)
	defer cancel()
	if leaves {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx) // the server is told the deadline only
		defer leave()
		defer time.AfterFunc(c.patience, leave).Stop()
	}
	outcome := c.send(ctx, c.transports[n%clientCount])
	ok := outcome == loadgen.OK && !leaves
	if end := time.Now(); ok && !end.Before(c.from) && end.Before(c.to) {
		c.good.Add(1)
	}
	if counts && !leaves && p == spillway.Critical {
		c.criticalSent.Add(1)
		if ok {
			c.criticalOK.Add(1)
		}
	}
	return outcome
}

func (c *crowd) send(ctx context.Context, t *client.Transport) loadgen.Outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return loadgen.Error
	}
	req.Header.Set("Authorization", credential)
	outcome, shed := service.Ask(t, req)
	if shed {
		c.refused.Add(1)
	}
	return outcome
}

// storm measures the service in front of a crowd.
func (c Config) storm(ctx context.Context, srv *service.Service, s scene, seed uint64) (results.Run, error) {
	crowd, err := newCrowd(srv.Address, s, c.Work)
	if err != nil {
		return results.Run{}, err
	}
	defer crowd.base.CloseIdleConnections()
	load := s.load(c)
	load.Seed = seed
	crowd.from, crowd.to = load.Window()
	run, served, err := srv.Measure(ctx, load, crowd.do)
	if err != nil {
		return results.Run{}, err
	}
	run.Extra = map[string]float64{
		"goodput": float64(crowd.good.Load()) / run.Elapsed, "refused": float64(crowd.refused.Load()), "lag_ms": float64(run.Lag.Max()) / 1e6,
	}
	for _, t := range crowd.transports {
		s := t.Stats()
		run.Extra["retries"] += float64(s.Retries)
		run.Extra["throttled"] += float64(s.Throttled)
	}
	if n := crowd.criticalSent.Load(); n > 0 {
		run.Extra["critical"] = 100 * float64(crowd.criticalOK.Load()) / float64(n)
	}
	waves(run.Extra, served, crowd.to)
	shares(run.Extra, served.Samples, crowd.from, crowd.to)
	return run, nil
}

// waves adds how many requests arrived in a step at most and on average, from the
// first refusal until then. The arrivals include retries.
func waves(extra map[string]float64, s service.Served, until time.Time) {
	i := slices.IndexFunc(s.Samples, func(x service.Sample) bool { return x.Rejected > 0 })
	if i < 0 {
		return
	}
	from, to := int(s.Samples[i].At.Sub(s.Began)/service.Step), int(until.Sub(s.Began)/service.Step)
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
}

// shares adds the share, in per cent, of each priority that was refused in that time or
// left while it waited, or would have been in a dry run; what was refused since the start;
// and whether the dry run's report said at the end that its estimate is unsafe.
func shares(extra map[string]float64, samples []service.Sample, from, to time.Time) {
	samples = slices.DeleteFunc(samples, func(x service.Sample) bool { return x.At.Before(from) || !x.At.Before(to) })
	if len(samples) == 0 {
		return
	}
	first, last := samples[0], samples[len(samples)-1]
	extra["would"], extra["shed"] = float64(last.WouldReject-first.WouldReject), float64(last.Rejected)
	extra["unsafe"] = map[bool]float64{true: 1}[last.Unsafe]
	for p, b := range last.ByPriority {
		a := first.ByPriority[p]
		if offered := b.Offered - a.Offered; offered > 0 {
			shed := b.Rejected - a.Rejected + b.WouldReject - a.WouldReject + b.Cancelled - a.Cancelled
			extra["share_"+p.String()] = 100 * float64(shed) / float64(offered)
		}
	}
}
