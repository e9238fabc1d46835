// Command web has the contestants of experiment R: gin, chi and handlers
// by hand, and the routes that all of them serve. The lab builds and starts it.
package main

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime"
	"sync"

	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

var roles = map[string]contestant.Role{
	routes.RoleMeasure: turns.Role(usage.CPU, player), routes.RoleCount: callgrind.Role(player),
	routes.RoleCollect: contestant.Func(collect), routes.RoleLate: contestant.Func(lookLate),
}

func main() { contestant.Program(roles) }

// starts are the contestants, by name. What differs between them is in the report.
var starts = map[string]func() (http.Handler, error){
	routes.Spillway:     startSpillway,
	routes.Mux:          startMux,
	routes.MuxValidator: startMuxValidator,
	routes.Chi:          startChi,
	routes.Gin:          startGin,
	routes.GinTyped:     startGinTyped,
	routes.Fresh:        startSpecimen(specimen.Build{}),
	routes.Pooled:       startSpecimen(specimen.Build{Pooled: true}),
	routes.Explicit:     startSpecimen(specimen.Build{Pooled: true, Explicit: true}),

	// So that only the harness is measured:
	routes.Nothing: func() (http.Handler, error) {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil
	},
}

// warm is how many requests fill a contestant's pools again before each turn: the
// collections before the turns of the others have emptied them.
const warm = 8

// player sends requests, in the parallel scenario by as many goroutines as there are processors. All
// players are in one process: only one works at a time, and a collection before and after each turn
// keeps its garbage apart, so that its processor time is its own; heap and roots are the same for all.
func player(p routes.Player) (turns.Player, error) {
	start, ok := starts[p.Name]
	switch {
	case !ok:
		return turns.Player{}, fmt.Errorf("there is no contestant %q", p.Name)
	case p.Build != thisBuild:
		return turns.Player{}, fmt.Errorf("the contestants were built with %s instead of %s: leave GOEXPERIMENT unset", thisBuild, p.Build)
	}
	h, err := start()
	if err != nil {
		return turns.Player{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	lanes, want := 1, requests[p.Scenario].Status
	if p.Scenario == routes.Parallel {
		lanes = runtime.GOMAXPROCS(0)
	}
	if p.Name == routes.Nothing {
		want = http.StatusOK
	}
	senders, wrong := make([]*harness, lanes), make([]error, lanes)
	for i := range senders {
		senders[i] = newHarness(h, requests[p.Scenario])
	}
	repeat := func(i, n int) {
		for range n {
			if status, body := senders[i].send(); status != want {
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
		Name:  p.Name,
		Ready: func(int) error { send(warm * lanes); return nil },
		Block: send,
		Done:  func() error { return cmp.Or(wrong...) },
	}, nil
}

// share is the i-th of so many parts of n.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }
