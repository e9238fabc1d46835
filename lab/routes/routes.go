// Package routes is experiment R: what a pooled request context is worth in a published
// typed layer over gin, and what a typed route costs beside hand-written code and other
// frameworks. The contestants are the program lab/contestants/web.
package routes

import (
	"runtime"
	"time"

	"github.com/spillway-go/spillway/lab/bouts"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

// Experiment is the declaration. The program lab/contestants/web plays its roles.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `A published typed layer over gin takes the context that it gives to handlers from a sync.Pool. What does that save, and what does it risk? And what does a typed route cost beside the same written by hand, or another framework?

Every contestant serves two routes with the same fields, the same checks and the same answer: a patient of a ward is created from path, query and body (JSON, or a form), or one is looked up by id. There are five scenarios, as published: JSON, a form, JSON with a field of 500 characters, JSON on all processors at once, and GET.

Half of the published time was its harness, which makes a request and a recorder for every iteration. Here both are reused, and their cost with a handler that does nothing is subtracted. The contestants of a scenario take short turns in one process, in random order. What counts is the processor time, the collector's included; its collections and pauses are counted over 100,000 requests, with the collector left alone. Where Valgrind is installed, instructions are counted too, and decide what pooling is worth: differences of tens of nanoseconds drown in the times.

The contestants are built twice, the second time with GOEXPERIMENT=jsonv2, which takes a minute once. The goals of Spillway's own routes are judged in that build, with the default one beside. Last, goroutines still read their request's context when the handler has returned, as database/sql does with rows.`

// Config is what a user may set.
type Config struct {
	Time     time.Duration `group:"Size" default:"5ms" quick:"2ms" above:"0s" most:"1m" help:"How long a turn is."`
	Rounds   int           `group:"Size" default:"25" quick:"6" whole:"8" least:"1" most:"1000" help:"How often every contestant has its turn in each scenario, in each repeat."`
	Counted  int           `group:"Size" default:"250" quick:"60" whole:"150" least:"1" most:"100000" help:"Requests of which instructions are counted, three times in each repeat, where Valgrind is installed."`
	OneBuild bool          `group:"Size" help:"Do not build the contestants a second time, with GOEXPERIMENT=jsonv2. The goals of Spillway's own routes then stay open."`
}

// Set-ups. The contest exists for each build.
const (
	Net       = "published shape, net of the harness"
	LeftAlone = "published shape, the collector left alone"
	contestOf = "contest, "
	ByCount   = "published shape, instructions"
	late      = "after the handler has returned"
	lateLoad  = "20,000 requests"
)

// twice are the contestants that have a twin, by set-up.
func twice(setup, name string) bool {
	return name == Fresh || name == Pooled && setup == ByCount || name == Spillway || name == GinTyped
}

func plan(c Config) (p experiment.Plan, err error) {
	for _, scenario := range Scenarios {
		c.inTurns(&p, Net, StdJSON, scenario, Shape)
	}
	for _, name := range []string{Fresh, Pooled} {
		for _, k := range (ledger.Key{Setup: LeftAlone, Load: JSON, Pattern: name}).AndTwin(name == Fresh) {
			p.Alone(k, CollectedRequests*15*time.Microsecond, spec(RoleCollect, StdJSON, Player{name, JSON, StdJSON}))
		}
	}
	if callgrind.Installed() {
		t := bouts.Table[Player]{Config: turns.Config{Rounds: 3, Least: c.Counted}, Label: ByCount, Net: Nothing, Spec: spec(RoleCount, StdJSON, nil)}
		t.Takes = time.Duration(c.Counted) * 3 * time.Millisecond
		t.Spec.MemoryCap = 0 // Valgrind has memory of its own
		for _, scenario := range []string{JSON, Form, Short, Large, Get} {
			add(&t, ByCount, StdJSON, scenario, Counted)
		}
		t.Counted(&p)
	}
	builds := []string{StdJSON, JSONv2}
	if c.OneBuild {
		builds = builds[:1]
	}
	for _, build := range builds {
		p.Programs = append(p.Programs, spec(RoleMeasure, build, nil))
		for _, scenario := range Scenarios {
			c.inTurns(&p, contestOf+build, build, scenario, Contest)
		}
	}
	for _, name := range Late {
		if name != Pooled || !usage.Race { // whose detector would stop the program at the fault
			p.Alone(ledger.Key{Setup: late, Load: lateLoad, Pattern: name}, time.Second, spec(RoleLate, StdJSON, name))
		}
	}
	return p, nil
}

// inTurns adds a scenario in one set-up, measured in one process.
func (c Config) inTurns(p *experiment.Plan, setup, build, scenario string, names []string) {
	t := bouts.Table[Player]{
		Config: turns.Config{Rounds: c.Rounds, Time: c.Time, Least: 1}, Spec: spec(RoleMeasure, build, nil), Net: Nothing, Versus: processor.Key,
		Figures: experiment.Figures{processor.Key: turns.AllNanos, allocs.Key: turns.Mallocs, "bytes": turns.Bytes},
	}
	if scenario == Parallel {
		t.Least = runtime.GOMAXPROCS(0) // each has requests to send
	}
	if setup == Net { // of which contention is claimed
		t.Figures[clock.Key] = turns.WallNanos
	}
	add(&t, setup, build, scenario, names)
	t.To(p)
}

// add adds contestants in a scenario.
func add(t *bouts.Table[Player], setup, build, scenario string, names []string) {
	for _, name := range names {
		t.Add(ledger.Key{Setup: setup, Load: scenario, Pattern: name}, twice(setup, name), Player{name, scenario, build})
	}
}
