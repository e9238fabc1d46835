package fan

import "time"

// program is the folder of lab/contestants whose program plays the roles.
const program = "fan"

// Roles of the program, with what they take and return.
const (
	RoleLookups = "fan-lookups" // Lookups, [][]Figures by table and contestant
	RoleChange  = "fan-change"  // nothing, map[string]float64
	RoleHedging = "fan-hedging" // Hedging, map[string]float64
	RolePrinted = "fan-printed" // Printed, map[string]float64
)

// How a source spends its time.
const (
	Virtual   = "virtual time"             // it waits, and the clock is virtual
	Sleeping  = "sleeping"                 // it waits by time.Sleep
	Yielding  = "waiting that yields"      // it waits in a loop of runtime.Gosched
	Computing = "computing"                // it computes
	OneProc   = "computing, one processor" // and GOMAXPROCS is 1
)

// The contestants.
const (
	Sequential = "sequential"
	AsPrinted  = "as-printed"
	Corrected  = "corrected"
	ErrGroup   = "errgroup"
	Conc       = "conc"
	Spillway   = "spillway"

	// Spillway configured to be parallel, the mode in which it starts and runs waiting
	// branches.
	InParallel = "spillway-parallel"
)

// Names are the contestants of the published sizes.
var Names = []string{Spillway, Sequential, AsPrinted, Corrected, ErrGroup, Conc}

// Published are the durations of the database and the cache.
var Published = []Table{
	{Load: "50/50 ms", Database: 50 * time.Millisecond, Cache: 50 * time.Millisecond},
	{Load: "500/100 µs", Database: 500 * time.Microsecond, Cache: 100 * time.Microsecond},
	{Load: "5/1 µs", Database: 5 * time.Microsecond, Cache: time.Microsecond},
}

// Lookups are measured in one process: table by table, the contestants of each in turns.
type Lookups struct {
	Kind        string
	Tables      []Table
	Contestants []string // one that is named twice plays twice
	Rounds      int
	Time        time.Duration // of each measurement
	Least       int           // lookups of each measurement
	Seed        uint64        // of the order
}

// Table is a size of a lookup.
type Table struct {
	Load            string
	Sources         int // a database, the rest caches
	Database, Cache time.Duration
	Levels          int  // with 2 and more, a source is itself a lookup of so many sources, and so on
	Budget          int  // of extra goroutines, for contestants that have one; 0: their default
	Allocations     bool // are counted: the sources allocate nothing, or belong to the lookup
}

// Figures are what one contestant used for one lookup, in every round: "ns", "allocs",
// "bytes", "lost", "goroutines"; and "free", how many processors two goroutines got.
type Figures map[string][]float64

// Hedging is two sources that are slow now and then, called repeatedly in virtual
// time, and then for a tenth of the calls an outage of both.
type Hedging struct {
	Hedged bool
	Calls  int
	Seed   uint64
}

// Printed is calls of the published code as printed, in a process of its own, which they may end.
type Printed struct {
	Calls int
	Wait  time.Duration // of each store, in virtual time
}
