// Command web has the contestants of experiment R: gin, fiber and other frameworks, and
// the routes that all of them serve. The lab builds and starts it.
package main

import (
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
	"github.com/spillway-go/spillway/lab/routes"
)

func main() { contestant.Program(roles()) }

func roles() map[string]contestant.Role {
	return map[string]contestant.Role{routes.RoleMeasure: contestant.Func(measure), routes.RoleLate: contestant.Func(lookLate)}
}

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
	routes.PooledShort:   startSpecimen(specimen.Build{Pooled: true, Short: true}),

	// So that only the harness is measured:
	routes.Nothing: func() (handlers, error) {
		return handlers{http: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, nil
	},
	routes.NothingFast: func() (handlers, error) { return handlers{fast: func(*fasthttp.RequestCtx) {}}, nil },
}
