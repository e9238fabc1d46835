package main

import (
	"time"

	"github.com/spillway-go/spillway/lab/routes"
)

type labRoutesCmd struct {
	Quick bool `env:"SPILLWAY_LAB_ROUTES_QUICK" group:"Size" help:"Few and short rounds, about a minute."`

	Time     time.Duration `env:"SPILLWAY_LAB_ROUTES_TIME" group:"Size" placeholder:"D" help:"How long a contestant works in each of its turns; 5ms unless given."`
	Rounds   int           `env:"SPILLWAY_LAB_ROUTES_ROUNDS" group:"Size" placeholder:"N" help:"Turns of every contestant in each repeat; 30 unless given. Short turns and many of them even out what else the machine does."`
	OneBuild bool          `env:"SPILLWAY_LAB_ROUTES_ONE_BUILD" group:"Size" help:"Do not build the contestants a second time with the other version of encoding/json. Promises about Spillway's own routes then stay open."`

	labRun `embed:"" set:"id=R" set:"repeats=6" set:"seeds=the order of the turns" set:"memory=512"`
}

// Help teaches.
func (labRoutesCmd) Help() string {
	return `A published typed layer over gin takes the context that it gives to handlers from a sync.Pool. What does that save, and what does it risk? And what does a typed route cost beside the same written by hand, or another framework?

Two routes, written by every contestant with the same fields, the same checks and the same answer: a patient of a ward is created from path, query and body (JSON, or a form), or one is looked up by id. Five scenarios, as published: JSON, a form, JSON with a field of 500 characters, JSON on all processors at once, GET. What a contestant leaves out is stated with its figures.

Half of the published time was its harness, which makes a request and a recorder for every iteration. Here both are reused, and their cost with a handler that does nothing is subtracted; the published harness runs too, so that its share is a figure.

All contestants of a table run in one process and take turns of milliseconds in random order, and are compared within a round. What counts is the processor time of the process, divided by the requests. No garbage collection runs within a turn; one runs after each, and a turn is charged for as many as its garbage would have caused. fiber is no net/http handler, so it is compared separately.

The contestants are a program of their own, which the go command builds once, and once more with the other version of encoding/json (GOEXPERIMENT=jsonv2); each build takes about a minute. Promises about Spillway's own routes are judged in the second, with the figures of the default one beside.

Last, a demonstration: goroutines that still have their request's context when the handler has returned.

Examples:
  spillway lab R                           some five minutes on two cores
  spillway lab R --quick                   a short run
  spillway lab R --one-build               the default version of encoding/json only
  spillway lab R --repeats 30              narrower intervals
  spillway lab judge spillway-results/…    verdicts again, from the raw runs

The same contestants as plain benchmarks, for benchstat:
  go test ./lab/contestants/web -run '^$' -bench Request -count 10 | benchstat -col /contestant -

` + labEnds
}

func (c *labRoutesCmd) Run(env *environment) error {
	config := routes.Defaults()
	if c.Quick {
		config = routes.Quick()
	}
	if c.Time != 0 {
		config.Time = c.Time
	}
	if c.Rounds != 0 {
		config.Rounds = c.Rounds
	}
	config.OneBuild, config.MemoryCap = c.OneBuild, c.bytes()
	return c.run(env, routes.Experiment{Config: config})
}
