// Package ladder is experiment G7: what fasthttp's lead over net/http consists
// of. It measures the processor time of servers for a request on keep-alive
// connections, from raw reads and writes up to net/http, and climbs from one to
// the other on a small server whose savings can be switched one by one. Servers and
// client are the program lab/contestants/ladder.
//
// The small server runs with every set of savings. A saving's share is what it
// takes off in the mean of all orders in which the savings can be added, from
// none to every one (its Shapley value), in per cent of the lead in the same
// repeat. First and last in the order are the two ends of that: added to none,
// and taken from all. Shares by this definition add up to the difference of the
// two servers whatever savings are worth together. So in every repeat
//
//	lead = net/http − the small server without savings
//	     + the share of each saving
//	     + the small server with every saving − fasthttp
//
// and the two lines that are no saving's share are the unexplained part of the lead.
// Their absolute values are added up: a small server that is cheaper than net/http
// at one end and cheaper than fasthttp at the other has the same difference and
// explains less.
package ladder

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment G7.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.Ladder.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.Ladder.Title }

// Set-ups.
const (
	Servers  = "all servers"
	Added    = "each saving added to none"
	Removed  = "each saving taken from all"
	FastLess = "each saving taken from fasthttp"
	Others   = "every other set of savings"
)

// Config is what a user may set.
type Config struct {
	Conns     int    // keep-alive connections
	Requests  int    // to each server in each round
	Rounds    int    // in each repeat
	PerConn   int    // requests after which a connection is replaced; 0: never
	MemoryCap uint64 // bytes for each server; 0: none
}

// Defaults is the experiment at full size.
func Defaults() Config {
	return Config{Conns: 32, Requests: 1024, Rounds: 15, MemoryCap: 512 << 20}
}

// Quick is a short run.
func Quick() Config {
	c := Defaults()
	c.Requests, c.Rounds = 512, 4
	return c
}

func (c Config) check() error {
	switch {
	case c.Conns < 1 || c.Conns > MaxConns/2:
		return fmt.Errorf("connections is %d: want 1 to %d", c.Conns, MaxConns/2)
	case c.Requests < 1 || c.Requests > 10_000_000:
		return fmt.Errorf("requests is %d: want 1 to 10000000", c.Requests)
	case c.Rounds < 1 || c.Rounds > 1000:
		return fmt.Errorf("rounds is %d: want 1 to 1000", c.Rounds)
	case c.PerConn < 0:
		return fmt.Errorf("per-connection is %d: it cannot be negative (0 keeps connections)", c.PerConn)
	}
	return nil
}

// scaled says how this differs from the experiment at full size.
func (c Config) scaled() string {
	d := Defaults()
	var parts []string
	own := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	own(c.Conns != d.Conns, "%d connections instead of %d", c.Conns, d.Conns)
	own(c.Requests != d.Requests || c.Rounds != d.Rounds, "%d rounds of %d requests instead of %d of %d", c.Rounds, c.Requests, d.Rounds, d.Requests)
	own(c.PerConn != d.PerConn, "a new connection after every %d requests", c.PerConn)
	return strings.Join(parts, "; ")
}

// entry names a cell and its server.
type entry struct {
	setup, pattern string
	twin           bool
	rung           Rungs // that is added to none or taken from all
	job            Server
}

// Load is the only load.
const Load = "keep-alive"

func (e entry) key() cell {
	return cell{Setup: e.setup, Load: Load, Pattern: e.pattern, Twin: e.twin}
}

// entries are all servers. The twins of both ends of the small server are a rung that
// changes nothing: its measured value is noise.
func entries() []entry {
	all := []entry{
		{setup: Servers, pattern: Raw, job: Server{Kind: Raw}},
		{setup: Servers, pattern: NetHTTP, job: Server{Kind: NetHTTP}},
		{setup: Servers, pattern: NetHTTPPooled, job: Server{Kind: NetHTTPPooled}},
		{setup: Servers, pattern: FastHTTP, job: Server{Kind: FastHTTP, Save: AllRungs}},
		{setup: Servers, pattern: fastWithout, job: Server{Kind: FastHTTP}},
	}
	for _, twin := range []bool{false, true} {
		all = append(all,
			entry{setup: Servers, pattern: slow, twin: twin},
			entry{setup: Servers, pattern: fast, twin: twin, job: Server{Save: AllRungs}})
	}
	for save := range AllRungs + 1 {
		c := small(save)
		switch c.Setup {
		case Added, Others:
			all = append(all, entry{setup: c.Setup, pattern: c.Pattern, rung: save, job: Server{Save: save}})
		case Removed:
			all = append(all, entry{setup: c.Setup, pattern: c.Pattern, rung: AllRungs &^ save, job: Server{Save: save}})
		}
	}
	for _, r := range bare {
		all = append(all, entry{setup: FastLess, pattern: r.String(), rung: r, job: Server{Kind: FastHTTP, Save: AllRungs &^ r}})
	}
	return all
}

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	c := e.Config
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	all := entries()
	var once experiment.Shared[[]results.Run]
	plan := experiment.Plan{Scaled: c.scaled(), Programs: []contestant.Spec{c.spec(RoleServer, nil), c.spec(RoleClient, nil)}}
	each := time.Duration((c.Rounds+1)*c.Requests)*13*time.Microsecond + 40*time.Millisecond // to start
	for i, en := range all {
		plan.Cells = append(plan.Cells, experiment.Cell{
			Setup: en.setup, Load: Load, Pattern: en.pattern, Twin: en.twin,
			Beside: fmt.Sprintf("%d servers in turns", len(all)), Expect: each * time.Duration(len(all)),
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				runs, err := once.Of(t.Repeat, func() ([]results.Run, error) { return c.measure(ctx, all, t.Seed) })
				if err != nil {
					return results.Run{}, err
				}
				return runs[i], nil
			},
		})
	}
	return plan, nil
}

// measure starts every server and the client, and makes a run of each. All servers are
// started first and take turns, because the cost of a request drifts with the load of
// the machine.
func (c Config) measure(ctx context.Context, all []entry, seed uint64) ([]results.Run, error) {
	job := ClientJob{Conns: c.Conns, PerConn: c.PerConn, Requests: c.Requests, Rounds: c.Rounds, Seed: seed}
	var servers []*contestant.Process
	exits := make([]contestant.Exit, len(all))
	stop := func() {
		for i, p := range servers {
			exits[i], _ = p.Stop(ctx, nil) // the client has its figures
		}
		servers = nil
	}
	defer stop()
	for _, en := range all {
		var at Where
		p, err := contestant.Start(ctx, c.spec(RoleServer, en.job), &at)
		if err != nil {
			return nil, err
		}
		servers = append(servers, p)
		job.Servers = append(job.Servers, at)
	}
	var got []Measured
	if _, err := contestant.Run(ctx, c.spec(RoleClient, job), &got); err != nil {
		return nil, err
	}
	stop()
	if len(got) != len(all) {
		return nil, fmt.Errorf("the client measured %d servers, want %d", len(got), len(all))
	}
	runs := make([]results.Run, len(all))
	for i, m := range got {
		runs[i] = c.newRun(m)
		runs[i].Process.PeakRSS, runs[i].Killed = exits[i].PeakRSS, exits[i].Killed
		runs[i].Extra["peak_rss"] = float64(exits[i].PeakRSS)
	}
	stack(all, runs)
	return runs, nil
}

func (c Config) newRun(m Measured) results.Run {
	return results.Run{
		Elapsed: m.Seconds,
		Process: results.Process{CPUSeconds: m.Seconds, ReuseRate: -1},
		Params:  map[string]any{"connections": c.Conns, "requests": m.Requests, "per_connection": c.PerConn},
		Blocks:  map[string][]float64{"cpu_us": m.CPU},
		Extra:   map[string]float64{"cpu_us": mean(m.CPU), "allocs": mean(m.Mallocs), "bytes": math.Round(mean(m.Bytes))},
	}
}

// stack returns the parts of every server's time, for the chart.
func stack(all []entry, runs []results.Run) {
	have := map[cell]float64{}
	for i, en := range all {
		have[en.key()] = cpu(runs[i])
	}
	of := func(c cell) float64 { return have[c] }
	floor := of(named(Raw))
	for i, en := range all {
		x := runs[i].Extra
		x["floor_us"] = min(floor, x["cpu_us"])
		x["above_us"] = x["cpu_us"] - x["floor_us"]
		if en.key() == named(NetHTTP) {
			x["above_us"] = of(named(FastHTTP)) - floor
			for _, r := range Ordered {
				x[r.key()] = worth(r)(of)
			}
			for _, r := range rests {
				x[r.key] = r.us(of)
			}
			continue
		}
		saving := 0.0
		switch en.setup {
		case Added:
			saving = fromSlow(en.key()).us(of)
		case Removed:
			saving = toFast(en.key()).us(of)
		case FastLess:
			saving = x["cpu_us"] - of(named(FastHTTP))
		default:
			continue
		}
		x["share"] = 100 * saving / lead(of)
		x[en.rung.key()] = saving
		if en.setup != Added { // it is not spent there
			x["above_us"] -= max(saving, 0)
		}
	}
}
