package main

import (
	"fmt"
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
	"github.com/spillway-go/spillway/lab/routes"
)

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
	routes.Mux:           startMux(false),
	routes.MuxValidator:  startMux(true),
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
}

// harnesses are handlers that do nothing, so that only the harness is measured.
var harnesses = map[string]handlers{
	routes.Nothing:     {http: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})},
	routes.NothingFast: {fast: func(*fasthttp.RequestCtx) {}},
}

// start starts a contestant or a harness.
func start(name string) (handlers, error) {
	if h, ok := harnesses[name]; ok {
		return h, nil
	}
	f, ok := starts[name]
	if !ok {
		return handlers{}, fmt.Errorf("there is no contestant %q", name)
	}
	h, err := f()
	if err != nil {
		return h, fmt.Errorf("%s: %w", name, err)
	}
	return h, nil
}
