package admission

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	probeRate    = 50 // a second
	probeTimeout = 2 * time.Second
)

// hostileLoad is the load of ordinary clients beside hostile ones.
const hostileLoad = .5

// The memory that a server under attack may use: what it uses anyway, and what a
// connection costs.
const (
	ownMemory        = 64 << 20
	connectionMemory = 32 << 10
)

// hostile measures what probes and known clients see while hostile clients, in a
// process of their own, do what they can. The pattern calm is the same without them.
func (c Config) hostile(ctx context.Context, j service.Job) (results.Run, error) {
	none := results.Run{}
	loading, srv, err := c.start(ctx, j)
	if err != nil {
		return none, err
	}
	var attacked attackReport
	var attack *contestant.Process
	if j.Pattern != calm {
		var open int
		attack, err = contestant.Start(loading, contestant.Spec{Role: roleAttackers, Input: target{srv.Address, c.Connections}, MemoryCap: c.cap()}, &open)
		if err != nil {
			return none, err
		}
	}
	// Known clients: the others can be as many as they like, and have no priority.
	known, err := loadgen.NewHTTP(loadgen.HTTPConfig{
		URL: "http://" + srv.Address + "/work", Header: http.Header{"Authorization": {credential}, admissionhttp.HeaderPriority: {"critical"}},
	})
	if err != nil {
		return none, err
	}
	defer known.Close()
	load := func(target loadgen.Target, s loadgen.Schedule) loadgen.Config {
		return loadgen.Config{Target: target, Open: s, Timeout: probeTimeout, Interval: service.Step}
	}
	var probed, res *loadgen.Result
	var probeErr, loadErr error
	began := time.Now()
	var both sync.WaitGroup
	both.Go(func() {
		probed, probeErr = loadgen.Run(loading, load(probeTarget("http://"+srv.Address+"/livez"), loadgen.Constant(probeRate, c.Time)))
	})
	both.Go(func() {
		res, loadErr = loadgen.Run(loading, load(known, loadgen.Poisson(hostileLoad*j.Work.Capacity(), c.Time, j.Seed%1e6)))
	})
	both.Wait()
	if err := errors.Join(probeErr, loadErr); err != nil {
		return none, err
	}
	if attack != nil {
		if _, err := attack.Stop(ctx, &attacked); err != nil {
			return none, err
		}
	}
	run := experiment.FromLoad(res)
	_, err = srv.End(ctx, &run, began)
	var all histogram.Histogram
	for _, o := range loadgen.Outcomes() {
		all.Merge(&probed.Outcomes[o].Latency)
	}
	memory := float64(run.Process.PeakRSS)
	run.Extra = map[string]float64{
		"probes": float64(probed.Offered), "probes_failed": float64(probed.Offered - probed.Outcomes[loadgen.OK].Count),
		"probe_p50_ms": float64(all.Quantile(.5)) / 1e6, "probe_p99_ms": float64(all.Quantile(.99)) / 1e6, "probe_worst_ms": float64(all.Max()) / 1e6,
		"probe_lag_ms": float64(probed.Lag.Max()) / 1e6,
		"connections":  float64(attacked.Open), "known": 100 * res.Share(loadgen.OK),
	}
	if memory > 0 {
		run.Extra["memory_mib"], run.Extra["memory_share"] = memory/(1<<20), 100*memory/(ownMemory+connectionMemory*float64(attacked.Open))
	}
	for kind, n := range attacked.Done {
		run.Extra["attack_"+kind] = float64(n)
	}
	if run.Killed != "" {
		run.Extra["probe_worst_ms"] = float64(probeTimeout.Milliseconds()) // no probe is answered after that
	}
	return run, err
}

// probeTarget asks for health as platforms do, on a new connection each time.
func probeTarget(url string) loadgen.Target {
	transport := &http.Transport{DisableKeepAlives: true}
	return loadgen.TargetFunc(func(ctx context.Context, _ uint64) loadgen.Outcome {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return loadgen.Error
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return loadgen.Error
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			return loadgen.Error
		}
		return loadgen.OK
	})
}
