package routes

import (
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/turns"
)

// Contestants.
const (
	Spillway      = "spillway"
	SpillwayTimed = "spillway, Server-Timing"
	Mux           = "mux by hand"
	MuxValidator  = "mux, validator"
	Gin           = "gin by hand"
	GinTyped      = "spillway on gin"
	Echo          = "echo"
	Chi           = "chi, validator"
	Huma          = "huma"
	Fuego         = "fuego"
	Fiber         = "fiber"
	Nothing       = "nothing" // what the harness costs

	Fresh       = "fresh context"
	Pooled      = "pooled context"
	PooledShort = "pooled, without the Sprintf" // as the two published builds differ
)

// Tables of contestants that are compared with each other. Fiber has one of its own: it
// is no net/http handler, so its request and its harness differ.
const (
	TablePublished = "published shape"
	TableContest   = "contest"
	TableFiber     = "fiber on fasthttp"
)

// Tables has the contestants of each table.
var Tables = map[string][]string{
	TablePublished: {Fresh, Pooled, PooledShort, Nothing},
	TableContest:   {Spillway, SpillwayTimed, Mux, MuxValidator, Chi, Gin, GinTyped, Echo, Huma, Fuego, Nothing},
	TableFiber:     {Fiber, Nothing},
}

// Scenarios, as published.
const (
	JSON     = "JSON POST"
	Form     = "form POST"
	Large    = "JSON POST, 500 characters"
	Parallel = "JSON POST, parallel"
	Get      = "GET"
	// The published form row sends a form to a type without form tags.
	Untagged = "form POST without form tags"
)

// Scenarios are those that every contestant is measured in.
var Scenarios = []string{JSON, Form, Large, Parallel, Get}

// weights are the published mixture, in per cent.
var weights = map[string]float64{JSON: 60, Get: 20, Form: 10, Large: 5, Parallel: 5}

// Does reports whether a contestant can do a scenario.
func Does(name, scenario string) bool { return name != Huma || scenario != Form }

// JSON of a build of the contestants.
const (
	StdJSON = "encoding/json"
	JSONv2  = "json v2"
)

// The program of the contestants and its roles: Measure takes a Job and returns a
// Measured; Late takes a LateJob and returns what was Seen.
const (
	program     = "web"
	RoleMeasure = "routes"
	RoleLate    = "routes-late"
)

// spec starts a role of the program in one of its builds.
func spec(role, build string, input any, memoryCap uint64) contestant.Spec {
	s := contestant.Spec{Program: program, Role: role, Input: input, MemoryCap: memoryCap}
	if build == JSONv2 {
		s.Variant = []string{"GOEXPERIMENT=jsonv2"}
	}
	return s
}

// Job is the measurement of a table in one process, match after match.
type Job struct {
	Table   string
	Matches []Match
	Rounds  int
	Time    time.Duration // of a block
	Seed    uint64
}

// Match is a scenario whose contestants take turns.
type Match struct {
	Scenario  string
	Published bool // by the published harness
	Entries   []Entry
}

// Entry is a contestant, or its twin.
type Entry struct {
	Name string
	Twin bool
}

// Measured is the readings by match, entry and round.
type Measured struct {
	Build    string // the JSON package of the program
	Readings [][][]turns.Reading
}

// LateJob is a number of requests whose contexts are read late.
type LateJob struct {
	Name     string
	Requests int
}

// Seen is what goroutines read that outlived their handler.
type Seen struct {
	Right, Wrong, Panics int
	Example              string // of a panic
}
