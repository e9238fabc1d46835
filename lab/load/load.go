// Package load is the experiment that asks what a request costs the one who sends
// it: the same closed loop is driven by spillway load, by net/http's client, and by those
// load generators of others that are installed.
package load

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleServer:  contestant.Server(serve),
	roleNetHTTP: contestant.Func(viaNetHTTP),
})

const (
	roleServer  = "load-server"   // the URL; served
	roleNetHTTP = "load-net-http" // loop, its processor time
)

const help = `A load generator takes processors from what it measures, if they share a machine, and limits what can be offered, if they do not. Here a small HTTP server in a process of its own answers a closed loop of kept-alive connections without think time. The loop is driven in turns, one process a turn, by spillway load, by net/http's client in the same loop, and by those of wrk, hey, vegeta, k6 and oha that are found in PATH.

No figure is a generator's own: the processor time of its process, user and system, from start to exit, and its peak resident memory are the system's, the number of requests is the server's. spillway load runs twice, so that what it differs from itself shows the noise. A claim about a tool that is not installed stays open and says how to get it:
  apt install wrk
  go install github.com/rakyll/hey@latest
  go install github.com/tsenart/vegeta/v12@latest
  go install go.k6.io/k6@latest
  cargo install oha`

// Config is what a user may set.
type Config struct {
	Contestant  []string      `placeholder:"NAME" help:"Only these: spillway, net/http, wrk, hey, vegeta, k6, oha. Claims that need another one stay open."`
	Connections int           `group:"Size" default:"64" least:"1" most:"10000" help:"Clients of the closed loop, each with a connection. Claims are about 64."`
	Time        time.Duration `group:"Size" default:"3s" full:"10s" whole:"2s" quick:"200ms" least:"50ms" help:"How long each turn is. wrk and k6 take the next whole second."`
}

func plan(c Config) (p experiment.Plan, err error) {
	if c.Contestant, err = c.chosen(); err != nil {
		return p, err
	}
	for _, name := range c.Contestant {
		for _, k := range key(name, c.Connections).AndTwin(name == spillway) {
			p.Cells = append(p.Cells, experiment.Cell{
				Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin,
				Expect: c.lasts(name) + 200*time.Millisecond, Run: c.turn(name),
			})
		}
	}
	return p, nil
}

// chosen are the contestants that the user named, or all that are installed.
func (c Config) chosen() (out []string, err error) {
	if len(c.Contestant) == 0 {
		out = []string{spillway, netHTTP}
		for _, t := range tools {
			if t.installed() {
				out = append(out, t.name)
			}
		}
		return out, nil
	}
	for _, t := range tools {
		for _, name := range c.Contestant {
			if name == t.name && !t.installed() {
				return nil, fmt.Errorf("contestant %s is not in PATH: %s, or leave it out", name, t.install)
			}
		}
	}
	return experiment.Chosen(c.Contestant, names())
}

func (t tool) installed() bool {
	_, err := exec.LookPath(t.name)
	return err == nil
}

// turn is one process that sends the loop to a server of its own.
func (c Config) turn(name string) func(context.Context, experiment.Trial) (results.Run, error) {
	return func(ctx context.Context, _ experiment.Trial) (results.Run, error) {
		l := loop{Connections: c.Connections, Time: c.lasts(name)}
		server, err := contestant.Start(ctx, contestant.Spec{Role: roleServer}, &l.URL)
		if err != nil {
			return results.Run{}, err
		}
		used, sendErr := l.send(ctx, name)
		var s served
		_, err = server.Stop(ctx, &s)
		switch {
		case sendErr != nil:
			return results.Run{}, sendErr
		case err != nil:
			return results.Run{}, err
		case s.Requests == 0:
			return results.Run{}, fmt.Errorf("%s sent no request", name)
		}
		return run(used, s), nil
	}
}

// lasts is how long the contestant sends.
func (c Config) lasts(name string) time.Duration {
	if name == wrk || name == k6 {
		return (c.Time + time.Second - 1).Truncate(time.Second)
	}
	return c.Time
}

// run is the figures of a turn. What the system does not tell is missing.
func run(used contestant.Used, s served) results.Run {
	r := results.Run{
		Elapsed: s.Time.Seconds(), Extra: map[string]float64{"requests": float64(s.Requests)},
		Process: results.Process{Usage: usage.Usage{CPUSeconds: used.CPU.Seconds(), PeakRSS: used.PeakRSS}, ReuseRate: -1},
	}
	if s.Time > 0 {
		r.Extra["rate"] = float64(s.Requests) / s.Time.Seconds()
	}
	if used.CPU > 0 {
		r.Extra[cost.Key] = float64(used.CPU.Nanoseconds()) / 1e3 / float64(s.Requests)
	}
	return r
}

func key(name string, connections int) ledger.Key {
	return ledger.Key{Setup: "closed loop", Load: fmt.Sprintf("%d connections", connections), Pattern: name}
}
