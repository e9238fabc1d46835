// Package durable is the experiment that enqueues durable jobs one call at a time, with
// commits that calls share and with an fsync for each.
package durable

import (
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `Callers enqueue a job each, wait until it is on disk, and enqueue the next. The engine is NATS JetStream in the contestant's own process. Ours is package jobqueue/jetstream, whose concurrent calls share a commit; beside it each message is published, and synced, alone. What is possible shows ours without a sync before the acknowledgement.

Every contestant runs in a process and a folder of its own, one after the other in a new order each repeat. Then its engine is started again and counts: is a job missing that was acknowledged?`

// The contestants.
const (
	GroupCommit = "group commit"
	Each        = "fsync on each"
	Interval    = "without fsync"
)

// RoleBout is what the program plays: it takes a Bout and returns a map of figures.
const RoleBout = "durable-bout"

// Config is what a user may set.
type Config struct {
	Time   time.Duration `group:"Size" default:"3s" quick:"300ms" above:"0s" help:"How long each contestant is measured, after a sixth of that time."`
	Folder string        `placeholder:"FOLDER" help:"Where the jobs are written: the disk that is measured. Without it, the folder for temporary files; if that is in memory, the goal is reached too easily."`
}

// Bout is the input of a contestant.
type Bout struct {
	Contestant     string
	Callers, Bytes int
	WarmUp, Timed  time.Duration
	Folder         string
}

func plan(c Config) (p experiment.Plan, err error) {
	for _, name := range []string{GroupCommit, Each, Interval} {
		spec := contestant.Spec{Program: "durable", Role: RoleBout, Input: Bout{name, 512, 256, c.Time / 6, c.Time, c.Folder}}
		p.Programs = []contestant.Spec{spec}
		for _, k := range key(name).AndTwin(name == GroupCommit) {
			p.Alone(k, c.Time*7/6+time.Second, spec)
		}
	}
	return p, nil
}

const setup = "an engine in the process"

func key(contestant string) ledger.Key {
	return ledger.Key{Setup: setup, Load: "512 callers, 256 bytes", Pattern: contestant}
}

// goal is how many jobs a second there should be, and share how much group commit keeps of
// the rate without fsync: what it is for.
const (
	goal  = 15_000
	share = .8
)

// rate is a contestant's.
func rate(contestant string) ledger.Term {
	return ledger.Of(key(contestant), ledger.Extra("rate", "acknowledged jobs a second"))
}

var family = ledger.Family{
	ID:    "durable",
	Title: "Durable jobs, enqueued one call at a time: commits that calls share, and an fsync for each",
	Claims: []ledger.Claim{{
		ID: "engine-2", Goal: true, Title: "single calls enqueue 15,000 jobs a second, each on disk before it is acknowledged",
		Note: "How many fsyncs a disk does in a second differs by a factor of a hundred between disks.",
		Parts: []ledger.Part{
			{ID: "rate", Title: "15,000 jobs a second", Subject: "jobs a second, group commit", Unit: "a second", Rule: judge.AtLeast(goal), Spread: .1,
				Cases: ledger.One(setup, rate(GroupCommit))},
			{ID: "kept", Title: "every job that was acknowledged is there after a restart", Subject: "the count of jobs that are missing", Kind: judge.Never, Rule: judge.Exactly(0),
				Cases: ledger.One(setup, ledger.Of(key(GroupCommit), ledger.Extra("missing", "acknowledged jobs that are missing")))},
		},
	}, {
		ID: "group-commit", Goal: true, Title: "waiting for the disk costs a fifth of the rate at most",
		Note: "How many times the rate of an fsync on each that is, is a property of the disk: the faster its fsync, the less there is to share. That ratio is shown and decides nothing.",
		Parts: []ledger.Part{{Subject: "jobs a second, of those without fsync or with one on each", Unit: "x", Rule: judge.AtLeast(share), Spread: .1,
			Cases: ledger.Only(
				ledger.Case{Setup: "beside no fsync", Value: rate(GroupCommit).Over(rate(Interval))},
				ledger.Case{Setup: "beside an fsync on each", Value: rate(GroupCommit).Over(rate(Each)), Beside: true})}},
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
