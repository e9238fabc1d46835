// Package load is the experiment that asks what a request costs the one who sends
// it: the same closed loop is driven by spillway load, and by those load generators of
// others that are installed.
package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `A load generator takes processors from what it measures, if they share a machine, and limits what can be offered, if they do not. Here a small HTTP server answers a closed loop of kept-alive connections without think time. The loop is driven in turns, one process a turn, by spillway load, and by those of wrk, hey, vegeta, k6 and oha that are found in PATH.

No figure is a generator's own: the processor time of its process, user and system, from start to exit, and its peak resident memory are the system's, the number of requests is the server's. spillway load runs twice, so that what it differs from itself shows the noise. A claim about a tool that is not installed stays open and says how to get it:
  apt install wrk
  go install github.com/rakyll/hey@latest
  go install github.com/tsenart/vegeta/v12@latest
  go install go.k6.io/k6@latest
  cargo install oha`

// Config is what a user may set.
type Config struct {
	Time time.Duration `group:"Size" default:"3s" full:"10s" whole:"2s" quick:"200ms" least:"50ms" help:"How long each turn is. wrk and k6 take the next whole second."`
}

func plan(c Config) (p experiment.Plan, err error) {
	for _, t := range tools {
		if t.path() == "" {
			continue
		}
		lasts := t.lasts(c.Time)
		for _, k := range key(t.name).AndTwin(t.name == spillway) {
			p.Cells = append(p.Cells, experiment.Cell{
				Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Expect: lasts + 200*time.Millisecond,
				Run: func(ctx context.Context, _ experiment.Trial) (results.Run, error) { return t.turn(ctx, lasts) },
			})
		}
	}
	return p, nil
}

// lasts is how long the tool sends.
func (t tool) lasts(d time.Duration) time.Duration {
	if t.name == wrk || t.name == k6 { // they know no part of a second
		return (d + time.Second - 1).Truncate(time.Second)
	}
	return d
}

// turn is one process that sends the loop to a server of its own, in this process.
func (t tool) turn(ctx context.Context, d time.Duration) (results.Run, error) {
	var s served
	server := httptest.NewServer(&s)
	used, err := t.send(ctx, loop{server.URL + "/", d})
	server.Close()
	if err == nil && s.requests.Load() == 0 {
		err = fmt.Errorf("%s sent no request", t.name)
	}
	if err != nil {
		return results.Run{}, err
	}
	return run(used, s.requests.Load(), time.Duration(s.last.Load()-s.first.Load())), nil
}

// served answers and counts.
type served struct {
	requests    atomic.Uint64
	first, last atomic.Int64 // since began, in nanoseconds
}

var began = time.Now()

// ServeHTTP makes it an http.Handler.
func (s *served) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	now := int64(time.Since(began))
	if s.requests.Add(1) == 1 {
		s.first.Store(now)
	}
	s.last.Store(now)
	_, _ = io.WriteString(w, "Hello, generator!\n") // a client may have left
}

// run is the figures of a turn. What the system does not tell is missing.
func run(used contestant.Used, requests uint64, took time.Duration) results.Run {
	n := float64(requests)
	r := results.Run{
		Elapsed: took.Seconds(), Extra: map[string]float64{"requests": n},
		Process: results.Process{Usage: usage.Usage{CPUSeconds: used.CPU.Seconds(), PeakRSS: used.PeakRSS}, ReuseRate: -1},
	}
	if took > 0 {
		r.Extra["rate"] = n / took.Seconds()
	}
	if used.CPU > 0 {
		r.Extra[cost.Key] = float64(used.CPU.Nanoseconds()) / 1e3 / n
	}
	return r
}

func key(name string) ledger.Key {
	return ledger.Key{Setup: "closed loop", Load: fmt.Sprintf("%d connections", connections), Pattern: name}
}
