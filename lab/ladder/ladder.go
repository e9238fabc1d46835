// Package ladder is experiment G7: what fasthttp's lead over net/http consists
// of. It measures the processor time of servers for a request on keep-alive
// connections, from raw reads and writes up to net/http, and climbs from one to
// the other on a small server whose savings can be switched one by one. Servers and
// client are the program lab/contestants/ladder.
//
// The small server runs with every set of savings. A saving's share is what it
// takes off in the mean of all orders in which the savings can be added, from
// none to every one (its Shapley value), in per cent of the lead in the same
// round. First and last in the order are the two ends of that: added to none,
// and taken from all. Shares by this definition add up to the difference of the
// two servers whatever savings are worth together. So in every round
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
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `fasthttp needs less processor time for a request than net/http. Which of its savings account for that? Every server answers the same request on the same number of connections. All of them take turns in one process, one at a time and in random order, and the client is another process; what counts is the processor time of the servers' process, user and system, divided by the requests.

All servers: the raw floor (fixed bytes are read and written; nothing can cost less), net/http, net/http with connections handed to a bounded pool of workers, fasthttp, fasthttp without its savings.

The ladder between them is a small HTTP/1.1 server made for this experiment, with six switches: pooled state (request and answer are reused), byte API (against *http.Request, http.Header and url.URL), own parser (against http.ReadRequest), connection workers (against a goroutine for each connection), no background read (against reading ahead to notice that the client left, a context to cancel, and every deadline that net/http sets), one write buffer (against two, with sorted fields and the date formatted for each answer).

What a switch is worth depends on the others. So the small server runs with every set of them, and a saving's share of the lead is what it takes off in the mean of all orders in which they can be switched on. Four of them are also taken from fasthttp itself. Both ends run twice: what a switch that changes nothing seems to be worth is noise.

A table lists all steps from net/http down to fasthttp, which add up to 100 %: the shares, and what the small server leaves at either end. The lead counts as explained except for the sizes of those two. With --per-connection 1 it shows what a pool of workers is worth without keep-alive.

Allocations for a request, exactly and without a network: go test ./lab/contestants/ladder -run '^$' -bench Rung -benchmem`

// Config is what a user may set.
type Config struct {
	Connections   int           `group:"Size" default:"32" help:"Keep-alive connections; each sends a request as soon as it has the last answer."`
	PerConnection int           `group:"Size" default:"0" placeholder:"N" help:"Replace a connection after this many requests; 0 keeps it. With 1, a goroutine for each connection is one for each request."`
	Rounds        int           `group:"Size" default:"15" quick:"5" help:"How often every server has its turn in each repeat. Short turns and many of them even out what else the machine does."`
	Time          time.Duration `group:"Size" default:"10ms" quick:"3ms" help:"Processor time of a turn, without its preparation."`
	MemoryCap     int           `default:"512" placeholder:"MIB" help:"Servers that need more memory than that are killed; 0 sets no limit."`
}

func (c Config) check() error {
	switch {
	case c.Connections < 1 || c.Connections > MaxConns/2:
		return fmt.Errorf("connections is %d: want 1 to %d", c.Connections, MaxConns/2)
	case c.PerConnection < 0:
		return fmt.Errorf("per-connection is %d: it cannot be negative (0 keeps connections)", c.PerConnection)
	case c.Rounds < 1 || c.Rounds > 1000:
		return fmt.Errorf("rounds is %d: want 1 to 1000", c.Rounds)
	case c.Time <= 0:
		return fmt.Errorf("time is %v: want more than 0s", c.Time)
	case c.MemoryCap < 0:
		return fmt.Errorf("memory-cap is %d: want a number of MiB, or 0 for no limit", c.MemoryCap)
	}
	return nil
}

func (c Config) spec(role string, input any) contestant.Spec {
	return contestant.Spec{Program: "ladder", Role: role, Input: input, MemoryCap: uint64(c.MemoryCap) << 20}
}

func plan(c Config) (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	all := entries()
	const between = 5 * time.Millisecond // turns, for the connections and a collection
	g := experiment.Group{
		Label:  fmt.Sprintf("%d servers in turns", len(all)),
		Expect: time.Duration(len(all)*(c.Rounds+4)) * (c.Time*3/2 + between),
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			return c.measure(ctx, all, t.Seed)
		},
	}
	for _, e := range all {
		g.Keys = append(g.Keys, e.Key)
	}
	return experiment.Plan{Programs: []contestant.Spec{c.spec(RolePlay, nil)}, Groups: []experiment.Group{g}}, nil
}

// measure makes a run of each server.
func (c Config) measure(ctx context.Context, all []entry, seed uint64) ([]results.Run, error) {
	game := Game{Connections: c.Connections, PerConn: c.PerConnection, Rounds: c.Rounds, Time: c.Time, Seed: seed}
	for _, e := range all {
		game.Servers = append(game.Servers, e.server)
	}
	client, err := contestant.Start(ctx, c.spec(RoleClient, nil), &game.Client)
	if err != nil {
		return nil, err
	}
	var readings [][]turns.Reading
	exit, err := contestant.Run(ctx, c.spec(RolePlay, game), &readings)
	_, _ = client.Stop(ctx, nil) // the servers have the figures
	runs := make([]results.Run, len(all))
	for i := range runs {
		runs[i] = results.Run{Killed: exit.Killed, Process: results.Process{ReuseRate: -1}}
		if len(readings) == len(all) {
			c.fill(&runs[i], readings[i])
		}
	}
	if len(readings) == len(all) {
		divide(all, runs)
		stack(all, runs)
	}
	return runs, err
}

// fill is a run of its readings.
func (c Config) fill(r *results.Run, readings []turns.Reading) {
	requests := 0
	for _, turn := range readings {
		requests += turn.N
		r.Elapsed += turn.Wall.Seconds()
		r.Process.CPUSeconds += (turn.Clock + turn.Collector).Seconds()
		r.Process.Mallocs += turn.Mallocs
		r.Process.AllocBytes += turn.Bytes
	}
	r.Params = map[string]any{"connections": c.Connections, "per_connection": c.PerConnection, "requests": requests}
	micros := func(turn turns.Reading) float64 { return turns.AllNanos(turn) / 1e3 }
	ledger.Keep(r, "cpu_us", turns.Each(readings, micros))
	ledger.Keep(r, "allocs", turns.Each(readings, turns.Mallocs))
	ledger.Keep(r, "bytes", turns.Each(readings, turns.Bytes))
}
