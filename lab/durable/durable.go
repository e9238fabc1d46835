// Package durable is the experiment that enqueues durable jobs one call at a time, with
// commits that calls share and with an fsync for each.
package durable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Config.plan, nil)

const help = `Callers enqueue a job each, wait until it is on disk, and enqueue the next. The engine is NATS JetStream in the contestant's own process. Ours is package jobqueue/jetstream, whose concurrent calls share a commit; beside it each message is published, and synced, alone. Two more contestants show what is possible: ours without a sync before the acknowledgement, and a file that is written and synced by one caller, without any engine.

Every contestant runs in a process and a folder of its own, one after the other in a new order each repeat. Then its engine is started again and counts: is a job missing that was acknowledged?`

// The contestants.
const (
	GroupCommit = "group commit"
	Each        = "fsync on each"
	Interval    = "without fsync"
	File        = "a file and fsync"
)

// RoleBout is what the program plays: it takes a Bout and returns a map of figures.
const (
	RoleBout = "durable-bout"
	program  = "durable"
)

// Config is what a user may set.
type Config struct {
	Callers int           `group:"Size" default:"512" quick:"64" least:"1" most:"10000" help:"How many callers enqueue at a time."`
	Bytes   int           `group:"Size" default:"256" least:"0" most:"100000" help:"How large the payload of a job is."`
	WarmUp  time.Duration `group:"Size" default:"500ms" quick:"100ms" above:"0s" help:"How long each contestant runs before it is measured."`
	Time    time.Duration `group:"Size" default:"3s" quick:"300ms" above:"0s" help:"How long it is measured."`
	Folder  string        `placeholder:"FOLDER" help:"Where the jobs are written: the disk that is measured. Without it, the folder for temporary files; if that is in memory, the goal is reached too easily."`
}

// Bout is the input of a contestant.
type Bout struct {
	Contestant     string
	Callers, Bytes int
	WarmUp, Timed  time.Duration
	Folder         string
}

func (c Config) key(contestant string) ledger.Key {
	return ledger.Key{Setup: setup, Load: fmt.Sprintf("%d callers, %d bytes", c.Callers, c.Bytes), Pattern: contestant}
}

const setup = "an engine in the process"

// keys are the contestants; ours plays twice.
func (c Config) keys() (keys []ledger.Key) {
	for _, name := range []string{GroupCommit, Each, Interval, File} {
		keys = append(keys, c.key(name).AndTwin(name == GroupCommit)...)
	}
	return keys
}

func (c Config) plan() (experiment.Plan, error) {
	keys := c.keys()
	return experiment.Plan{
		Programs: []contestant.Spec{{Program: program, Role: RoleBout}},
		Groups: []experiment.Group{{
			Keys: keys, Label: "all ways to enqueue, one after the other", Expect: time.Duration(len(keys)) * (c.WarmUp + c.Time + time.Second),
			Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) { return c.compare(ctx, keys, t) },
		}},
	}, nil
}

// compare measures all of them in a random order.
func (c Config) compare(ctx context.Context, keys []ledger.Key, t experiment.Trial) (runs []results.Run, err error) {
	runs = make([]results.Run, len(keys))
	for _, i := range rand.New(rand.NewPCG(t.Seed, 6)).Perm(len(keys)) {
		b := Bout{Contestant: keys[i].Pattern, Callers: c.Callers, Bytes: c.Bytes, WarmUp: c.WarmUp, Timed: c.Time, Folder: c.Folder}
		if runs[i], err = experiment.Alone(contestant.Spec{Program: program, Role: RoleBout, Input: b})(ctx, t); err != nil {
			return nil, err
		}
		runs[i].Params = map[string]any{"callers": c.Callers, "bytes": c.Bytes}
	}
	return runs, nil
}

// The figures.
var (
	rate    = ledger.Extra("rate", "acknowledged jobs a second")
	missing = ledger.Extra("missing", "acknowledged jobs that are missing")
)

// goal is how many jobs a second there should be, and share how much group commit keeps of
// the rate without fsync: what it is for.
const (
	goal  = 15_000
	share = .8
)

// of is a figure of a contestant, whatever the number of callers was.
func of(e *ledger.Evidence, contestant string, f ledger.Figure) ledger.Term {
	for _, k := range e.Keys(func(k ledger.Key) bool { return k.Pattern == contestant }) {
		return ledger.Of(k, f)
	}
	return ledger.Of(ledger.Key{Setup: setup, Load: "any", Pattern: contestant}, f)
}

func one(value func(e *ledger.Evidence) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) []ledger.Case { return []ledger.Case{{Setup: setup, Value: value(e)}} }
}

var family = ledger.Family{
	ID:    "durable",
	Title: "Durable jobs, enqueued one call at a time: commits that calls share, and an fsync for each",
	Claims: []ledger.Claim{{
		ID: "engine-2", Goal: true, Title: "single calls enqueue 15,000 jobs a second, each on disk before it is acknowledged",
		Note: "How many fsyncs a disk does in a second differs by a factor of a hundred between disks. The contestant with a file shows what one caller could do on this one without any engine.",
		Parts: []ledger.Part{
			{ID: "rate", Title: "15,000 jobs a second", Subject: "jobs a second, group commit", Unit: "a second", Rule: judge.AtLeast(goal), Spread: .1,
				Cases: one(func(e *ledger.Evidence) ledger.Term { return of(e, GroupCommit, rate) })},
			{ID: "kept", Title: "every job that was acknowledged is there after a restart", Subject: "the count of jobs that are missing", Kind: judge.Never, Rule: judge.Exactly(0),
				Cases: one(func(e *ledger.Evidence) ledger.Term { return of(e, GroupCommit, missing) })},
		},
	}, {
		ID: "group-commit", Goal: true, Title: "waiting for the disk costs a fifth of the rate at most",
		Note: "How many times the rate of an fsync on each that is, is a property of the disk: the faster its fsync, the less there is to share. That ratio is shown and decides nothing.",
		Parts: []ledger.Part{{Subject: "jobs a second, of those without fsync or with one on each", Unit: "x", Rule: judge.AtLeast(share), Spread: .1,
			Cases: func(e *ledger.Evidence) []ledger.Case {
				ours := of(e, GroupCommit, rate)
				return []ledger.Case{
					{Setup: "beside no fsync", Value: ours.Over(of(e, Interval, rate))},
					{Setup: "beside an fsync on each", Value: ours.Over(of(e, Each, rate)), Beside: true},
				}
			}}},
	}},
	Columns: []ledger.Column{
		{Key: "rate", Name: "jobs/s"}, {Key: "p50", Name: "p50 of a call", Format: "nanos"}, {Key: "p99", Name: "p99 of a call", Format: "nanos"}, {Key: "missing", Name: "missing"},
	},
	Method: []ledger.Note{
		{Title: "Callers", Text: "512 goroutines each enqueue a job of 256 bytes and wait for the acknowledgement before they enqueue the next. Nobody hands over more than one job at a time: what is shared is the commit. Calls that were acknowledged within the measured time count."},
		{Title: "The same engine", Text: "Both engines are NATS JetStream in the contestant's process with sync_interval: always, so that an acknowledgement follows the fsync. In one case each job is a message of its own, in the other package jobqueue/jetstream stores those that came during a commit as the next one."},
		{Title: "Missing", Text: "The server is stopped in good order and started again, and what it then has is compared with what it acknowledged. A crash is another matter: go test ./jobqueue/internal/proof kills it."},
	},
}
