package routes

import "github.com/spillway-go/spillway/lab/contestant"

// Contestants.
const (
	Spillway     = "spillway"
	Mux          = "mux by hand"
	MuxValidator = "mux with validator"
	Chi          = "chi with validator"
	Gin          = "gin by hand"
	GinTyped     = "spillway on gin"

	Fresh    = "fresh context"
	Pooled   = "pooled context"
	Explicit = "pooled without defer" // the context is given back by the last statement

	Nothing = "nothing" // what the harness costs
)

// Those who are compared with each other; the last of them is the harness.
var (
	Shape   = []string{Fresh, Pooled, Nothing}
	Counted = []string{Fresh, Pooled, Explicit, Nothing} // by their instructions
	Contest = []string{Spillway, Mux, MuxValidator, Chi, Gin, GinTyped, Nothing}
	Late    = []string{Spillway, GinTyped, Fresh, Pooled} // after the handler has returned
)

// Scenarios, as published.
const (
	JSON     = "JSON POST"
	Form     = "form POST"
	Large    = "JSON POST, 500 characters"
	Parallel = "JSON POST, parallel"
	Get      = "GET"
	Short    = "JSON POST, 50 characters" // beside the published 500
)

// Scenarios are those that every contestant is measured in.
var Scenarios = []string{JSON, Form, Large, Parallel, Get}

// weights are the published mixture, in per cent.
var weights = map[string]float64{JSON: 60, Get: 20, Form: 10, Large: 5, Parallel: 5}

// The encoding/json that the contestants are built with.
const (
	StdJSON = "encoding/json"
	JSONv2  = "json v2"
)

// The roles of the program lab/contestants/web.
const (
	RoleMeasure = "routes"           // Players in turns
	RoleCount   = "routes-count"     // Players to be counted
	RoleCollect = "routes-collector" // a Player in CollectedRequests; "collections" and "pause_us"
	RoleLate    = "routes-late"      // the name of one of Late, in LateRequests; "right", "wrong" and "panics"
)

// So many requests are sent where the collector is left alone, and where contexts are read after
// their handler has returned.
const (
	CollectedRequests = 100_000
	LateRequests      = 20_000
)

// Player is a contestant in a scenario.
type Player struct {
	Name, Scenario string
	Build          string // the encoding/json that its program must have
}

// spec starts a role in one of the builds.
func spec(role, build string, input any) contestant.Spec {
	s := contestant.Spec{Program: "web", Role: role, Input: input, MemoryCap: 512 << 20}
	if build == JSONv2 {
		s.Variant = []string{"GOEXPERIMENT=jsonv2"}
	}
	return s
}
