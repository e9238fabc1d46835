package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/admission"
	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/fan"
	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ladder"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/reuse"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/shapes"
)

type labCmd struct {
	Run       labRunCmd       `cmd:"" default:"withargs" help:"Run an experiment: 'spillway lab H'. B, F, G, G7, R, admission, overload, pools and reuse have flags of their own; see their --help."`
	B         labBurstCmd     `cmd:"" name:"B" aliases:"b" help:"A burst of a million jobs a second: a goroutine for each, the published pool's shape, a bare channel, Spillway."`
	G         labShapesCmd    `cmd:"" name:"G" aliases:"g" help:"What it costs to hand work to a goroutine: five shapes, bounds for CPU-bound work, reuse of goroutines and of objects."`
	G7        labLadderCmd    `cmd:"" name:"G7" aliases:"g7" help:"What fasthttp's lead over net/http is made of: processor time for a request, saving by saving."`
	F         labFanCmd       `cmd:"" name:"F" aliases:"f" help:"A lookup in a database and caches, one after the other or at once: what is lost, what it costs, from where it pays."`
	R         labRoutesCmd    `cmd:"" name:"R" aliases:"r" help:"Typed routes: what a pooled request context saves and risks, and what a route costs beside hand-written code and other frameworks."`
	Overload  labOverloadCmd  `cmd:"" help:"A service offered more than it can do, behind each way of bounding it: goodput against offered load."`
	Admission labAdmissionCmd `cmd:"" help:"The HTTP middleware in front of a service: a storm with retries, clients that leave, a dry run, hostile clients."`
	Pools     labPoolsCmd     `cmd:"" help:"Worker pools side by side: what a job costs to hand over, refuse, wait for; bursts, memory, sizing."`
	Reuse     labReuseCmd     `cmd:"" help:"Objects reused: what sync.Pool, a channel and objectpool cost and keep."`
	Judge     labJudgeCmd     `cmd:"" help:"Decide every claim again from the raw runs of a results folder."`
	Selftest  labSelftestCmd  `cmd:"" help:"Test the instruments: plant known effects and see whether the judge finds them."`
}

// Help teaches.
func (labCmd) Help() string {
	return `Each experiment takes one family of published claims, or of our own, measures it again on this machine and gives a verdict for each claim, with an interval. Nothing else should run meanwhile.

Examples, with what they take on two cores:
  spillway lab H            five minutes
  spillway lab G            four minutes
  spillway lab G7           four minutes; --quick: about one
  spillway lab B            four minutes, and half of the memory
  spillway lab F            four minutes; --quick: about one
  spillway lab R            five minutes; --quick: about one
  spillway lab overload     ten minutes; --quick: three
  spillway lab admission    eight minutes; --quick: four
  spillway lab pools        six minutes; --quick: less than one
  spillway lab reuse        six minutes; --quick: about one
  spillway lab judge DIR    at once: the verdicts again, from the raw runs

Ctrl-C ends an experiment; what was measured until then is judged and written. Exit codes: 0 everything was measured, whatever the verdicts; 1 something could not be measured; 2 bad input; 130 Ctrl-C.`
}

// experiments by id. Judging needs no settings, so the values judge as they are.
var experiments = []experiment.Experiment{
	patterns.Experiment{},
	shapes.Experiment{Config: shapes.Defaults()},
	ladder.Experiment{Config: ladder.Defaults()},
	burst.Experiment{Config: burst.Defaults()},
	fan.Experiment{Config: fan.Defaults()},
	routes.Experiment{Config: routes.Defaults()},
	overload.Experiment{Config: overload.Defaults()},
	admission.Experiment{Config: admission.Defaults()},
	pools.Experiment{Config: pools.Defaults()},
	reuse.Experiment{Config: reuse.Defaults()},
}

// roles are the roles of the contestants of all experiments.
func roles() map[string]contestant.Role {
	all := patterns.Roles()
	maps.Copy(all, shapes.Roles())
	maps.Copy(all, ladder.Roles())
	maps.Copy(all, burst.Roles())
	maps.Copy(all, fan.Roles())
	maps.Copy(all, routes.Roles())
	maps.Copy(all, overload.Roles())
	maps.Copy(all, admission.Roles())
	maps.Copy(all, pools.Roles())
	maps.Copy(all, reuse.Roles())
	return all
}

func find(id string) (experiment.Experiment, error) {
	var known []string
	for _, e := range experiments {
		if strings.EqualFold(e.ID(), id) {
			return e, nil
		}
		known = append(known, fmt.Sprintf("%s (%s)", e.ID(), e.Title()))
	}
	if id == "" {
		return nil, fmt.Errorf("say which experiment: %s", strings.Join(known, ", "))
	}
	return nil, fmt.Errorf("unknown experiment %q: known are %s", id, strings.Join(known, ", "))
}

type labRunCmd struct {
	Experiment string `arg:"" optional:"" help:"Which claims to re-measure: H, a patient API under four concurrency patterns."`

	Full       bool          `env:"SPILLWAY_LAB_FULL" group:"Size" help:"The published number of requests; without it fewer requests, never fewer clients or workers."`
	Requests   int           `env:"SPILLWAY_LAB_REQUESTS" group:"Size" default:"0" help:"Requests of every load, instead of each load's own number."`
	Clients    int           `env:"SPILLWAY_LAB_CLIENTS" group:"Size" default:"0" help:"Clients of every load, instead of each load's own number."`
	Workers    int           `env:"SPILLWAY_LAB_WORKERS" group:"Size" default:"0" help:"Workers of the pools and slots of the limiter, instead of 20 (100 where the load is above 1,000 requests a second)."`
	QueueSize  int           `env:"SPILLWAY_LAB_QUEUE_SIZE" group:"Size" default:"100" help:"Requests that may wait for a worker; 0: none."`
	QueueWait  time.Duration `env:"SPILLWAY_LAB_QUEUE_WAIT" group:"Size" default:"100ms" help:"As published: how long a request waits for room in a full queue. For real, and by the limiter, it is refused at once."`
	MinLatency time.Duration `env:"SPILLWAY_LAB_MIN_LATENCY" group:"Size" default:"50ms" help:"Least time the store takes."`
	MaxLatency time.Duration `env:"SPILLWAY_LAB_MAX_LATENCY" group:"Size" default:"100ms" help:"Most time the store takes."`
	ErrorRate  float64       `env:"SPILLWAY_LAB_ERROR_RATE" group:"Size" default:"0.05" help:"Share of store calls that fail."`
	Patients   int           `env:"SPILLWAY_LAB_PATIENTS" group:"Size" default:"100000" help:"Patients in the database, which is made on first use and kept in your cache folder."`

	Pattern []string `env:"SPILLWAY_LAB_PATTERN" placeholder:"NAME" help:"Only these patterns: naive, workerpool, optimized, limiter. Claims that need another one stay open."`

	labRun `embed:"" set:"id=H" set:"seeds=the store's draws, the order of the runs"`
}

// labEnds ends the help of every experiment.
const labEnds = `Files: runs.jsonl (raw, one run a line), results.json, report.html (one file, opens without a network).

Exit codes: 0 everything was measured, whatever the verdicts; 1 a run or a demonstration could not be measured; 2 bad input; 130 Ctrl-C, after the partial result was written.`

// Help teaches.
func (labRunCmd) Help() string {
	return `Every contestant runs in a process of its own under a memory cap. Repeats are interleaved in random order, differences are paired within a repeat, and each verdict comes from an interval: holds, fails, or inconclusive with the number of runs that would settle it. Refusals, errors and successes are never mixed.

Experiment H loads a patient API under four patterns (naive, workerpool, optimized, limiter) in three set-ups: in the published shape (the published code, rebuilt), as published (ours in its place: function calls, a simulated store, 100 ms wait for queue room) and for real (HTTP on loopback to a server over SQLite with the same latency and errors, refused at once).

A size flag such as --clients applies to every load, also to those that are part of one claim only.

Examples:
  spillway lab H                                 five minutes on two cores
  spillway lab H --repeats 10 --out results/h    narrower intervals
  spillway lab H --full                          the published sizes, some twenty minutes
  spillway lab H --clients 200 --workers 50 --pattern workerpool --pattern limiter
  spillway lab judge results/h                   verdicts again, from the raw runs

` + labEnds
}

func (c *labRunCmd) Run(env *environment) error {
	config, err := c.config()
	if err != nil {
		return badInput(err)
	}
	exp, err := find(c.Experiment)
	if err != nil {
		return badInput(err)
	}
	if id := exp.ID(); id != claims.H.ID { // these flags would be ignored
		return badInput(fmt.Errorf("experiment %s has flags of its own: spillway lab %s", id, id))
	}
	return c.run(env, patterns.Experiment{Config: config})
}

// labRun holds the flags that all experiments share. A command embeds it and sets
// what differs; the other values are set on labCmd.
type labRun struct {
	Out       string `env:"SPILLWAY_LAB_OUT" placeholder:"DIR" help:"Where the results go; ./spillway-results/${id}-<time> unless given. Must not hold results yet."`
	Repeats   int    `env:"SPILLWAY_LAB_REPEATS" group:"Size" default:"${repeats}" help:"How often everything is run, interleaved; a verdict needs at least 3."`
	Seed      uint64 `env:"SPILLWAY_LAB_SEED" default:"0" help:"Of ${seeds} and the judge's bootstrap; 0 picks one and says which."`
	MemoryCap int    `env:"${memory_env}" default:"${memory}" help:"Memory ${subject} may use, in MiB (Linux only); above it is killed, which is a result. 0: ${no_cap}."`
	JSON      bool   `name:"json" env:"SPILLWAY_LAB_JSON" help:"Print results.json on standard output; progress stays on standard error."`
}

// bytes is the memory cap.
func (l labRun) bytes() uint64 { return uint64(max(l.MemoryCap, 0)) << 20 }

func (l labRun) check() error {
	switch {
	case l.Repeats < 1:
		return fmt.Errorf("repeats is %d: want at least 1, and 3 for verdicts", l.Repeats)
	case l.MemoryCap < 0:
		return fmt.Errorf("memory-cap is %d MiB: it cannot be negative", l.MemoryCap)
	}
	return nil
}

func (l labRun) run(env *environment, exp experiment.Experiment) error {
	if err := l.check(); err != nil {
		return badInput(err)
	}
	dir, seed := l.Out, l.Seed
	if dir == "" {
		dir = filepath.Join("spillway-results", exp.ID()+"-"+time.Now().Format("20060102-150405"))
	}
	if seed == 0 {
		seed = 1 + rand.Uint64N(999_999)
	}
	if !contestant.CapEnforced && l.MemoryCap > 0 {
		fmt.Fprintln(env.stderr, "note: the memory cap needs Linux and is not enforced here")
	}
	session := experiment.Session{
		Dir: dir, Repeats: l.Repeats, Seed: seed, Command: append([]string{"spillway"}, env.args...),
		Progress: experiment.NewProgress(env.stderr, env.liveStderr, env.width()),
	}
	res, runs, err := session.Run(env.ctx, exp)
	if errors.Is(err, experiment.ErrInput) {
		return badInput(err)
	}
	if err != nil {
		return err
	}
	if err := show(env, dir, res, runs, l.JSON); err != nil {
		return err
	}
	switch {
	case env.ctx.Err() != nil:
		return fmt.Errorf("%w; what was measured is in %s", errInterrupted, dir)
	case res.Partial != "":
		return failure{errors.New(res.Partial)}
	}
	return nil
}

// config checks the errors that only the command line can have.
func (c *labRunCmd) config() (patterns.Config, error) {
	if c.QueueSize < 0 {
		return patterns.Config{}, fmt.Errorf("queue-size is %d: it cannot be negative (0 means that no request waits)", c.QueueSize)
	}
	return patterns.Config{
		Full: c.Full, Requests: c.Requests, Clients: c.Clients, Workers: c.Workers,
		QueueSize: c.QueueSize, QueueWait: c.QueueWait, MinLatency: c.MinLatency, MaxLatency: c.MaxLatency,
		ErrorRate: c.ErrorRate, Patterns: c.Pattern, MemoryCap: c.bytes(), Patients: c.Patients,
	}, nil
}

func show(env *environment, dir string, res results.Results, runs []results.Run, asJSON bool) error {
	if asJSON {
		return writeJSON(env.stdout, res)
	}
	opts := report.Options{Width: 100}
	if f, ok := env.stdout.(*sink).Writer.(*os.File); ok {
		opts = report.For(f)
	}
	opts.Dir = dir
	return report.Terminal(env.stdout, res, runs, opts)
}

type labJudgeCmd struct {
	Dir  string `arg:"" help:"A results folder."`
	JSON bool   `name:"json" env:"SPILLWAY_LAB_JSON" help:"Print results.json on standard output."`
}

// Help teaches.
func (labJudgeCmd) Help() string {
	return `Reads the raw runs (runs.jsonl), decides every claim again and rewrites results.json and report.html. The same runs and seed give the same verdicts. A session that was killed before it could write results.json is judged too.

Example:
  spillway lab judge spillway-results/H-20260102-150405`
}

func (c *labJudgeCmd) Run(env *environment) error {
	res, runs, err := results.Read(c.Dir)
	if errors.Is(err, fs.ErrNotExist) && len(runs) > 0 {
		res = unfinished(runs)
		err = nil
	}
	if err != nil {
		return badInput(err)
	}
	exp, err := find(res.Experiment)
	if err != nil {
		return badInput(err)
	}
	res.Claims = exp.Judge(runs, res.Seed)
	if err := report.Write(c.Dir, res, runs); err != nil {
		return badInput(fmt.Errorf("the verdicts cannot be written: %w", err))
	}
	return show(env, c.Dir, res, runs, c.JSON)
}

// unfinished is the result of a session that left only its runs.
func unfinished(runs []results.Run) results.Results {
	last := runs[len(runs)-1]
	return results.Results{
		Schema: results.Schema, Experiment: last.Experiment, Machine: experiment.ThisMachine(),
		Started: runs[0].Started, Ended: last.Started.Add(time.Duration(last.Elapsed * float64(time.Second))),
		Partial: fmt.Sprintf("the session was killed after %d runs; its machine and seed are not known", len(runs)),
	}
}

type labSelftestCmd struct {
	Trials int    `env:"SPILLWAY_LAB_SELFTEST_TRIALS" default:"200" help:"Synthetic experiments for each planted effect and number of repeats."`
	Seed   uint64 `env:"SPILLWAY_LAB_SELFTEST_SEED" default:"1" help:"Of the planted noise."`
	Real   bool   `env:"SPILLWAY_LAB_SELFTEST_REAL" help:"Also test the load generator in real time, for half a minute: open loop at 1,000/s against a target that stalls 1 s in every 10 s, p99 and p99.9 beside the computed truth."`
	JSON   bool   `name:"json" env:"SPILLWAY_LAB_JSON" help:"Print the counts as JSON on standard output."`
}

// Help teaches.
func (labSelftestCmd) Help() string {
	return `An instrument that always gives the wished-for answer measures nothing. Here effects of 0, 5 and 20 % are planted into synthetic runs with realistic noise: of 0 % at most 5 % may be called an effect, of 20 % at least 90 % must be found.

Examples:
  spillway lab selftest
  spillway lab selftest --real    and the load generator, in real time`
}

func (c *labSelftestCmd) Run(env *environment) error {
	if c.Trials < 1 {
		return badInput(fmt.Errorf("trials is %d: want at least 1", c.Trials))
	}
	out := struct {
		Judge judge.Report `json:"judge"`
		Stall *stallReport `json:"stall,omitempty"`
	}{Judge: judge.Selftest(c.Trials, c.Seed, judge.Judge)}
	failed := out.Judge.Err()
	if !c.JSON {
		fmt.Fprint(env.stdout, out.Judge)
	}
	if c.Real {
		stall, err := measureStalls(env)
		if err != nil {
			return err
		}
		out.Stall = &stall
		failed = errors.Join(failed, stall.Err())
		if !c.JSON {
			fmt.Fprint(env.stdout, "\n", stall)
		}
	}
	if c.JSON {
		if err := writeJSON(env.stdout, out); err != nil {
			return err
		}
	}
	if failed != nil {
		return failure{failed}
	}
	return nil
}
