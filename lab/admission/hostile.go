package admission

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	probeRate    = 50 // a second
	probeTimeout = 2 * time.Second
)

// hostile measures what probes and known clients see while hostile clients, in a
// process of their own, do what they can. The pattern Calm is the same without them.
func (c Config) hostile(ctx context.Context, j job) (results.Run, error) {
	loading, srv, err := c.start(ctx, j)
	if err != nil {
		return results.Run{}, err
	}
	defer srv.stop()
	var attacked attackReport
	var attack *contestant.Process
	if j.Pattern != Calm {
		var open int
		attack, err = contestant.Start(loading, contestant.Spec{Role: roleAttackers, Input: target{srv.address, c.Connections}, MemoryCap: c.MemoryCap}, &open)
		if err != nil {
			return results.Run{}, err
		}
	}
	// Known clients: the others can be as many as they like, and have no priority.
	known := http.Header{"Authorization": {credential}, admissionhttp.HeaderPriority: {"critical"}}
	ordinary, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: "http://" + srv.address + "/work", Header: known, Timeout: probeTimeout})
	if err != nil {
		return results.Run{}, err
	}
	defer ordinary.Close()
	var probed, res *loadgen.Result
	var probeErr, loadErr error
	began := time.Now()
	var both sync.WaitGroup
	both.Go(func() {
		probed, probeErr = loadgen.Run(loading, loadgen.Config{
			Target: probeTarget("http://" + srv.address + "/livez"), Timeout: probeTimeout,
			Open: loadgen.Constant(probeRate, c.Measure), Interval: step,
		})
	})
	both.Go(func() {
		res, loadErr = loadgen.Run(loading, loadgen.Config{
			Target: ordinary, Timeout: probeTimeout, Open: loadgen.Poisson(hostileLoad*j.Work.Capacity(), c.Measure, j.Seed%1e6), Interval: step,
		})
	})
	both.Wait()
	for _, err := range []error{probeErr, loadErr} {
		if err != nil {
			return results.Run{}, err
		}
	}
	if attack != nil {
		if _, err := attack.Stop(ctx, &attacked); err != nil {
			return results.Run{}, err
		}
	}
	run := experiment.FromLoad(res)
	report, err := srv.end(ctx, j, &run)
	if err != nil {
		return run, err
	}
	report.timeline(&run, began)
	var all histogram.Histogram
	for _, o := range loadgen.Outcomes() {
		all.Merge(&probed.Outcomes[o].Latency)
	}
	bound := claims.HostileMemory + claims.HostileMemoryConnection*float64(attacked.Open)
	run.Extra = map[string]float64{
		"probes": float64(probed.Offered), "probes_failed": float64(probed.Offered - probed.Outcomes[loadgen.OK].Count),
		"probe_p50_ms": float64(all.Quantile(.5)) / 1e6, "probe_p99_ms": float64(all.Quantile(.99)) / 1e6, "probe_worst_ms": float64(all.Max()) / 1e6,
		"probe_lag_ms": float64(probed.Lag.Max()) / 1e6,
		"connections":  float64(attacked.Open), "memory_mib": float64(run.Process.PeakRSS) / (1 << 20), "memory_share": 100 * float64(run.Process.PeakRSS) / bound,
		"known": 100 * res.Share(loadgen.OK),
	}
	for kind, n := range attacked.Done {
		run.Extra["attack_"+kind] = float64(n)
	}
	if run.Killed != "" {
		run.Extra["probe_worst_ms"] = ms(probeTimeout) // no probe is answered after that
	}
	return run, nil
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
