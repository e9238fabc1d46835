// Command web has the contestants of experiment R: gin, fiber and other frameworks, and
// the routes that all of them serve. The lab builds and starts it.
package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

var roles = map[string]contestant.Role{
	routes.RoleMeasure: contestant.Func(measure), routes.RoleCollect: contestant.Func(collect), routes.RoleCount: contestant.Func(count),
	routes.RoleLate: contestant.Func(lookLate),
}

func main() { contestant.Program(roles) }

// handlers serve a contestant's routes: one of both is set.
type handlers struct {
	http http.Handler
	fast fasthttp.RequestHandler
}

// starts are the contestants, by name. What differs between them is in the test of bad
// requests and in the report.
var starts = map[string]func() (handlers, error){
	routes.Spillway:      startSpillway(true),
	routes.SpillwayTimed: startSpillway(false),
	routes.Mux:           startMux,
	routes.MuxValidator:  startMuxValidator,
	routes.Chi:           startChi,
	routes.Gin:           startGin,
	routes.GinTyped:      startGinTyped,
	routes.Echo:          startEcho,
	routes.Huma:          startHuma,
	routes.Fuego:         startFuego,
	routes.Fiber:         startFiber,
	routes.Fresh:         startSpecimen(specimen.Build{}),
	routes.Pooled:        startSpecimen(specimen.Build{Pooled: true}),
	routes.Explicit:      startSpecimen(specimen.Build{Pooled: true, Explicit: true}),
	routes.PooledShort:   startSpecimen(specimen.Build{Pooled: true, Short: true}),

	// So that only the harness is measured:
	routes.Nothing: func() (handlers, error) {
		return handlers{http: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, nil
	},
	routes.NothingFast: func() (handlers, error) { return handlers{fast: func(*fasthttp.RequestCtx) {}}, nil },
}

// measure plays a scenario. All players are in this one process, also in the parallel
// scenario: only one works at a time, and a collection before and after each turn keeps its
// garbage apart, so that its processor time is its own; heap and roots are the same for all.
func measure(ctx context.Context, j routes.Job) (routes.Measured, error) {
	out := routes.Measured{Build: thisBuild}
	lanes := 1 // goroutines that send requests
	if j.Scenario == routes.Parallel {
		lanes = runtime.GOMAXPROCS(0)
	}
	players := make([]turns.Player, len(j.Players))
	var err error
	for i, name := range j.Players {
		if players[i], err = player(name, j, lanes); err != nil {
			return out, err
		}
	}
	out.Readings, err = turns.Play(ctx, turns.Config{Rounds: j.Rounds, Time: j.Time, Seed: j.Seed, Least: lanes, Clock: usage.CPU}, players)
	return out, err
}

// count plays for callgrind.
func count(_ context.Context, j routes.CountJob) (any, error) {
	var players []turns.Player
	var blocks []func()
	for _, scenario := range j.Scenarios {
		for _, name := range j.Players {
			p, err := player(name, routes.Job{Scenario: scenario}, 1)
			if err != nil {
				return nil, err
			}
			p.Block(warm)
			players, blocks = append(players, p), append(blocks, func() { p.Block(j.Requests) })
		}
	}
	callgrind.Play(j.Rounds, j.Seed, blocks)
	for _, p := range players {
		if err := p.Done(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil, nil
}

// warm is how many requests fill a contestant's pools again before each turn: the
// collections before the turns of the others have emptied them.
const warm = 8

func player(name string, j routes.Job, lanes int) (turns.Player, error) {
	start, ok := starts[name]
	if !ok {
		return turns.Player{}, fmt.Errorf("there is no contestant %q", name)
	}
	h, err := start()
	if err != nil {
		return turns.Player{}, fmt.Errorf("%s: %w", name, err)
	}
	senders, wrong := make([]harness, lanes), make([]error, lanes)
	for i := range senders {
		senders[i] = newHarness(h, requests[j.Scenario], j.Published)
	}
	want := requests[j.Scenario].Status
	if name == routes.Nothing || name == routes.NothingFast {
		want = http.StatusOK
	}
	repeat := func(i, n int) {
		for range n {
			if status, body := senders[i](); status != want {
				wrong[i] = fmt.Errorf("answered %d, want %d: %s", status, want, body)
			}
		}
	}
	send := func(n int) {
		var others sync.WaitGroup
		for i := 1; i < lanes; i++ {
			others.Go(func() { repeat(i, share(n, i, lanes)) })
		}
		repeat(0, share(n, 0, lanes))
		others.Wait()
	}
	return turns.Player{
		Name:  name,
		Ready: func(int) error { send(warm * lanes); return nil },
		Block: send,
		Done:  func() error { return cmp.Or(wrong...) },
	}, nil
}

// share is the i-th of so many parts of n.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }
