// Package overload is the experiments that offer a service in a process of its own more than it
// can do, and ask what is answered behind each way of bounding it.
//
// A scene is a row: what the service does, what is sent, and who bounds it. The plan of an experiment
// (scene.go) is made from its scenes. A run (play.go) starts the service (serve.go), whose
// contestant is a Guard or the middleware, and sends it a mix of requests or a crowd of clients
// (clients.go). The other files have the scenes and claims of the experiments.
package overload

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// Config is the flags of each of these experiments.
type Config struct {
	Scene      []string        `placeholder:"NAME" help:"Only these scenes. Goals about the others stay open."`
	Contestant []string        `placeholder:"NAME" help:"Only these contestants. Goals that need another one stay open."`
	Pace       float64         `group:"Size" default:"1" quick:"0.4" least:"0.01" most:"2" help:"How long warm-ups, measurements and troubles are, in multiples of the usual."`
	Postgres   postgres.Server `env:"SPILLWAY_POSTGRES" placeholder:"URL" help:"A PostgreSQL for the scenes that need one, as its superuser: postgres://user@host:port/postgres, with a password only in the environment. The experiment makes databases of its own and drops them."`
	service.Limits
}

// scene is a row: a service, what is sent to it, and what bounds it.
type scene struct {
	name        string   // by which the user chooses; several rows may share it
	serves      []string // scenes for whose claims this one is measured, too
	setup, load string   // of the cells; without a load, it is that of times
	title       string   // of the cases of claims; empty: the set-up and the load
	contestants []string
	kinds       []kind                 // of requests, which a mix sends, or
	manners     func(t *trial) manners // of the crowd of clients
	times, rate float64                // what is sent: in multiples of the capacity, or a second
	before      []before               // comes first, for nothing that is measured
	time        time.Duration          // that is measured, at the usual pace
	tail        time.Duration          // for which the load goes on, until all that counts is answered
	during      func(ctx context.Context, t *trial) (stop func() error, err error)
	figures     func(t *trial) map[string]float64
	each        func(t *trial) []results.Run // of every kind of request; nil: they have no cells

	program  string                 // of the service; empty: this one
	role     string                 // that the program plays; empty: RoleService
	does     string                 // what the program's service does
	backend  string                 // what it waits for, where the scenes of one name differ in that
	handler  Handler                // of the service in this program
	database bool                   // it needs a PostgreSQL
	front    bool                   // Spillway stands at the front of its process
	wait     time.Duration          // for the semaphore; 0: until the deadline
	slots    int                    // that a bound is told; 0: as many as were found to be right
	spec     func(*contestant.Spec) // changes how the process is started; may be nil

	clients   []int                           // that ask back to back, one number after the other, to find the capacity; nil: the model's
	calibrate func(t *trial) (int, error)     // finds Size.Rows; may be nil
	crowded   float64                         // the share of a processor that a contestant takes, so that several run at the same time; 0: each runs alone
	beside    string                          // scenes of one name run at the same time
	uses      float64                         // as of experiment.Group
	busy      func(contestant string) bool    // its clients may be late: the service takes the processors from them; may be nil
	group     func(*session) experiment.Group // measures the scene in another way; nil: as all
}

// before is a stretch of a load that comes before the measurement: the times are multiples of the
// capacity, or else the rate is that of the measurement.
type before struct {
	times  float64
	lasts  time.Duration
	steady bool // whatever the pace is
}

// kind is one kind of request.
type kind struct {
	name     string
	parts    int // of the requests
	length   int // milliseconds of work, where kinds differ in that
	path     string
	deadline time.Duration
	told     bool // the service is told the deadline
	header   map[string]string
}

func (s *scene) label() string { return cmp.Or(s.load, multiple(s.times)) }
func (s *scene) key(contestant string) ledger.Key {
	return ledger.Key{Setup: s.setup, Load: s.label(), Pattern: contestant}
}

// cells are those of a contestant: all requests, and each kind if these have cells.
func (s *scene) cells(all ledger.Key) []ledger.Key {
	keys := []ledger.Key{all}
	if s.each != nil {
		for _, k := range s.kinds {
			keys = append(keys, of(all, k))
		}
	}
	return keys
}

// of is the cell of one kind, beside that of all.
func of(all ledger.Key, k kind) ledger.Key {
	all.Load += ", " + k.name
	return all
}

// longest is how long the most patient kind waits.
func (s *scene) longest() (most time.Duration) {
	for _, k := range s.kinds {
		most = max(most, k.deadline)
	}
	return most
}

// lasts is a time at a pace.
func lasts(pace float64, d time.Duration) time.Duration { return time.Duration(pace * float64(d)) }

// stretches are the load of a run, whose capacity is so many requests a second, and which of them counts.
func (s *scene) stretches(pace, capacity float64) (all []service.Stretch, measured int) {
	rate := cmp.Or(s.rate, s.times*capacity)
	for _, b := range s.before {
		d := b.lasts
		if !b.steady {
			d = lasts(pace, d)
		}
		all = append(all, service.Stretch{Rate: cmp.Or(b.times*capacity, rate), For: d})
	}
	measured = len(all)
	all = append(all, service.Stretch{Rate: rate, For: lasts(pace, s.time)})
	if s.tail > 0 {
		all = append(all, service.Stretch{Rate: rate, For: s.tail})
	}
	return all, measured
}

// expect is how long a run takes: without a bound, the most patient wait nearly as long as they can.
func (s *scene) expect(pace float64, contestant string) time.Duration {
	if s.rate > 0 && contestant == unprotected {
		return 2 * time.Second // then it is killed
	}
	d := time.Second
	if contestant == None && s.times > 1 {
		d = s.longest()
	}
	all, measured := s.stretches(pace, 1)
	for _, x := range all[:measured+1] {
		d += x.For
	}
	return d
}

// planOf is the plan of an experiment with these scenes.
func planOf(scenes []*scene) func(Config) (experiment.Plan, error) {
	return func(c Config) (experiment.Plan, error) {
		var names, contestants []string
		for _, s := range scenes {
			names, contestants = add(names, s.name), add(contestants, s.contestants...)
		}
		if err := cmp.Or(c.Postgres.Check(), experiment.Known("scene", c.Scene, names), experiment.Known("contestant", c.Contestant, contestants)); err != nil {
			return experiment.Plan{}, err
		}
		m := &session{Config: c, sizes: map[string]size{}}
		for _, s := range scenes {
			wanted := func(name string) bool { return experiment.Wanted(c.Scene, name) }
			if (wanted(s.name) || slices.ContainsFunc(s.serves, wanted)) && (!s.database || c.Postgres != "") {
				m.scenes = append(m.scenes, s)
			}
		}
		p := experiment.Plan{Prepare: m.prepare, Serving: func() int { return int(m.server.Load()) }}
		var programs []string
		for _, s := range m.scenes {
			if s.program != "" && !slices.Contains(programs, s.program) {
				programs = append(programs, s.program)
				p.Programs = append(p.Programs, contestant.Spec{Program: s.program, Role: cmp.Or(s.role, RoleService)})
			}
			p.Groups = append(p.Groups, m.groups(s)...)
		}
		if len(p.Groups) == 0 {
			return p, postgres.ErrNone
		}
		return p, nil
	}
}

// add appends the names that are not there yet.
func add(to []string, names ...string) []string {
	for _, name := range names {
		if !slices.Contains(to, name) {
			to = append(to, name)
		}
	}
	return to
}

// keys are the cells of the contestants that are wanted.
func (m *session) keys(s *scene) []ledger.Key {
	wanted := slices.DeleteFunc(slices.Clone(s.contestants), func(name string) bool { return !experiment.Wanted(m.Contestant, name) })
	return ledger.Keys(s.setup, s.label(), wanted)
}

// groups are the cells of a scene. As many contestants run at the same time, each in a process of
// its own, as the processors bear.
func (m *session) groups(s *scene) (out []experiment.Group) {
	keys := m.keys(s)
	if s.group != nil && len(keys) > 0 {
		return []experiment.Group{s.group(m)}
	}
	batches := 1
	if s.crowded > 0 {
		together := max(int(float64(runtime.GOMAXPROCS(0))/s.crowded), 1)
		batches = (len(keys) + together - 1) / together
	}
	for i, k := range keys {
		g := experiment.Group{
			Keys: s.cells(k), Label: strings.Join([]string{k.Setup, k.Load, k.Pattern}, " · "), Uses: s.uses, Expect: s.expect(m.Pace, k.Pattern),
			Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
				return m.run(ctx, s, k.Pattern, t.Seed)
			},
		}
		if s.crowded > 0 {
			g.Beside = fmt.Sprintf("%s, %d of %d", cmp.Or(s.beside, s.setup+", "+s.label()), 1+i%batches, batches)
		}
		out = append(out, g)
	}
	return out
}

// cases are a case for each scene. One is open if a contestant that it needs was not run.
func cases(scenes []*scene, needed []string, value func(s *scene) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, s := range scenes {
			out = append(out, ledger.Case{Setup: cmp.Or(s.title, s.setup+", "+s.label()), Value: value(s), Open: s.missing(e, needed...)})
		}
		return out
	}
}

// missing says how to get the runs that a case lacks.
func (s *scene) missing(e *ledger.Evidence, needed ...string) string {
	ran := func(name string) bool { return e.Has(s.key(name)) }
	if slices.Contains(s.contestants, Spillway) {
		needed = append([]string{Spillway}, needed...)
	}
	switch any := slices.ContainsFunc(s.contestants, ran); {
	case !any && s.database:
		return "It needs PostgreSQL: run it with --postgres URL and without --scene."
	case !any:
		return "The goal speaks of every scene: run it without --scene."
	case slices.ContainsFunc(needed, func(name string) bool { return !ran(name) }):
		return "The goal compares contestants: run it without --contestant."
	}
	return ""
}

// without is the names but one.
func without(name string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// share is a figure in per cent of another one.
func percent(part, whole ledger.Term) ledger.Term { return part.Over(whole).Times(100) }

// bestOf is the best figure of these contestants.
func (s *scene) bestOf(names []string, f ledger.Figure) ledger.Term {
	var all []ledger.Term
	for _, name := range names {
		all = append(all, ledger.Of(s.key(name), f))
	}
	return ledger.Best(all...)
}

// The figures that several experiments have. A contestant that was killed has answered what it had until
// then, of the whole measurement.
var (
	goodput  = ledger.Figure{Name: "goodput", OfKilled: true, Value: ledger.Goodput.Value}
	capacity = ledger.Extra("capacity", "capacity")
)
