package routes

import (
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/turns"
)

// Contestants.
const (
	Spillway      = "spillway"
	SpillwayTimed = "spillway with Server-Timing"
	Mux           = "mux by hand"
	MuxValidator  = "mux with validator"
	Chi           = "chi with validator"
	Gin           = "gin by hand"
	GinTyped      = "spillway on gin"
	Echo          = "echo"
	Huma          = "huma"
	Fuego         = "fuego"
	Fiber         = "fiber"

	Fresh       = "fresh context"
	Pooled      = "pooled context"
	PooledShort = "pooled without the Sprintf" // as the two published builds differ
	Explicit    = "pooled without defer"       // the context is given back by the last statement

	Nothing     = "nothing" // what the harness costs
	NothingFast = "nothing on fasthttp"
)

// Those who are compared with each other; the last of them is the harness. Who is there
// twice has a twin: what it differs from itself is noise. Fiber is no net/http handler,
// so that its request and its harness differ.
var (
	Shape      = []string{Fresh, Fresh, Pooled, PooledShort, Nothing}
	Counted    = []string{Fresh, Fresh, Pooled, Pooled, Explicit, Nothing} // by their instructions
	Contest    = []string{Spillway, Spillway, SpillwayTimed, Mux, MuxValidator, Chi, Gin, GinTyped, GinTyped, Echo, Huma, Fuego, Nothing}
	OnFasthttp = []string{Fiber, NothingFast}
)

// Scenarios, as published.
const (
	JSON     = "JSON POST"
	Form     = "form POST"
	Large    = "JSON POST, 500 characters"
	Parallel = "JSON POST, parallel"
	Get      = "GET"
	Untagged = "form POST without form tags" // to which the published form row sends its form
	Short    = "JSON POST, 50 characters"    // beside the published 500
)

// Scenarios are those that every contestant is measured in.
var Scenarios = []string{JSON, Form, Large, Parallel, Get}

// weights are the published mixture, in per cent.
var weights = map[string]float64{JSON: 60, Get: 20, Form: 10, Large: 5, Parallel: 5}

// Does reports whether a contestant can do a scenario.
func Does(name, scenario string) bool { return name != Huma || scenario != Form }

// The encoding/json that the contestants are built with.
const (
	StdJSON = "encoding/json"
	JSONv2  = "json v2"
)

// The roles of the program lab/contestants/web.
const (
	RoleMeasure = "routes"           // takes a Job and returns what was Measured
	RoleCollect = "routes-collector" // takes a Job and returns what was Collected by player
	RoleCount   = "routes-count"     // takes a CountJob and plays it for callgrind
	RoleLate    = "routes-late"      // takes a LateJob and returns what was Seen
)

// spec starts a role in one of the builds.
func spec(role, build string, input any, memoryCapMiB int) contestant.Spec {
	s := contestant.Spec{Program: "web", Role: role, Input: input, MemoryCap: uint64(memoryCapMiB) << 20}
	if build == JSONv2 {
		s.Variant = []string{"GOEXPERIMENT=jsonv2"}
	}
	return s
}

// Job is a scenario in which contestants take turns.
type Job struct {
	Scenario  string
	Published bool // by the published harness
	Players   []string
	Rounds    int
	Time      time.Duration // of a turn
	Seed      uint64
}

// Measured is the readings by player and round.
type Measured struct {
	Build    string // the encoding/json of the program
	Readings [][]turns.Reading
}

// CollectedRequests is how many requests a player sends in RoleCollect.
const CollectedRequests = 100_000

// Collected is what the collector did in a player's requests.
type Collected struct {
	Collections int
	Pause       time.Duration // all stops of the world
}

// CountJob is so many requests of every player in every scenario, in each round. Those of
// the first are sent twice: what the scenario before has left in pools that all players
// share, such as fmt's, is then used up.
type CountJob struct {
	Scenarios, Players []string
	Rounds, Requests   int
	Seed               uint64
}

// LateJob is a number of requests whose contexts are read late.
type LateJob struct {
	Name     string
	Requests int
}

// Seen is what goroutines read that outlived their handler.
type Seen struct{ Right, Wrong, Panics int }
