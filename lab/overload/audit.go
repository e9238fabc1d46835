package overload

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
)

// RoleAudited is the whole service: it takes an Audited, is ready with an Address and
// returns what it has Recorded.
const RoleAudited = "db-audited"

// The contestants of audit.
const (
	Unaudited = "without audit"
	Audit     = "with audit"
	Flooded   = "with audit, overloaded"
)

// Audited is how the service is run.
type Audited struct {
	URL      string // of its store in PostgreSQL; empty: SQLite
	Patients int
	Audit    bool
	Adaptive bool // the service's own bound; otherwise it has none
}

// Address is where a client finds the service, and with which header it is let in.
type Address struct{ Address, Authorization string }

// Recorded is what a service says at its end.
type Recorded struct {
	Answers  uint64 // that it gave, refusals among them, to clients that were still there
	Records  uint64 // of all accesses
	Verified uint64 // records in a chain without a fault
	Commits  uint64
}

const (
	auditPatients = 1_000
	floods        = 3 // times as many clients as at most otherwise
	turnsOfAudit  = 4 // in which a cell is loaded
	auditWarmUp   = time.Second
	auditTime     = 3 * time.Second
)

var auditClients = []int{64, 128, 256}

// audits is the scene that measures what audit costs over one database.
func audits(name, engine string) *scene {
	s := &scene{name: name, setup: "the patient API over " + engine, title: engine, contestants: []string{Unaudited, Unaudited, Audit, Flooded}, program: "audited", role: RoleAudited, database: engine == PostgreSQL}
	s.group = func(m *session) experiment.Group {
		var keys []ledger.Key
		var clients []int
		for _, n := range auditClients {
			keys = append(keys, ledger.Keys(s.setup, backToBack(n), []string{Unaudited, Unaudited, Audit})...)
			clients = append(clients, n, n, n)
		}
		last := floods * slices.Max(auditClients)
		return experiment.Group{
			Keys: append(slices.Clip(keys), ledger.Key{Setup: s.setup, Load: backToBack(last), Pattern: Flooded}), Label: engine + " · the service with and without audit",
			Expect: time.Duration(len(keys)+1)*lasts(m.Pace, auditTime) + 4*(lasts(m.Pace, auditWarmUp)+time.Second),
			Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
				runs, err := m.alternate(ctx, s, keys, clients, t.Seed)
				if err != nil {
					return nil, err
				}
				flooded, err := m.overloaded(ctx, s, last)
				return append(runs, flooded), err
			},
		}
	}
	return s
}

func backToBack(clients int) string { return fmt.Sprintf("%d clients back to back", clients) }

// alternate runs the service with audit and, twice, without, all at one time, and loads one
// of them after the other in short turns: what the machine does besides meets all alike.
func (m *session) alternate(ctx context.Context, s *scene, keys []ledger.Key, clients []int, seed uint64) (runs []results.Run, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the services, too, if the run fails
	services := map[ledger.Key]*auditedService{}
	of := func(k ledger.Key) ledger.Key { return ledger.Key{Pattern: k.Pattern, Twin: k.Twin} }
	for _, k := range keys[:3] {
		one, err := m.start(ctx, s, Audited{Patients: auditPatients, Audit: k.Pattern == Audit})
		if err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, one.drop()) }()
		services[of(k)] = one
		if _, err := one.load(ctx, clients[0], lasts(m.Pace, auditWarmUp)); err != nil {
			return nil, err
		}
	}
	turns := make([][]results.Run, len(keys))
	for round := range turnsOfAudit {
		for _, i := range order(len(keys), seed+uint64(round)) {
			turn, err := services[of(keys[i])].load(ctx, clients[i], lasts(m.Pace, auditTime)/turnsOfAudit)
			if err != nil {
				return nil, err
			}
			turns[i] = append(turns[i], turn)
		}
	}
	runs = make([]results.Run, len(keys))
	for i, k := range keys {
		runs[i] = together(turns[i])
		s := services[of(k)]
		s.runs = append(s.runs, &runs[i])
	}
	for _, s := range services {
		if err := s.stop(ctx); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// overloaded runs the service with audit under more clients than it can serve.
func (m *session) overloaded(ctx context.Context, s *scene, clients int) (run results.Run, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	one, err := m.start(ctx, s, Audited{Patients: auditPatients, Audit: true, Adaptive: true})
	if err != nil {
		return run, err
	}
	defer func() { err = cmp.Or(err, one.drop()) }()
	if run, err = one.load(ctx, clients, lasts(m.Pace, auditWarmUp)+lasts(m.Pace, auditTime)); err != nil {
		return run, err
	}
	run = together([]results.Run{run})
	one.runs = []*results.Run{&run}
	return run, one.stop(ctx)
}

// auditedService is a service that runs over a database of its own.
type auditedService struct {
	in      Audited
	process *contestant.Process
	target  *loadgen.HTTP
	drop    func() error   // its database
	runs    []*results.Run // whose records it tells at its end
}

func (m *session) start(ctx context.Context, engine *scene, in Audited) (_ *auditedService, err error) {
	s := &auditedService{in: in, drop: func() error { return nil }}
	if engine.database {
		database, err := m.open(ctx, postgres.Population{})
		if err != nil {
			return nil, err
		}
		s.in.URL, s.drop = database.URL, database.Close
	}
	defer func() {
		if err != nil {
			err = cmp.Or(err, s.drop())
		}
	}()
	var at Address
	if s.process, err = contestant.Start(ctx, auditedSpec(s.in), &at); err != nil {
		return nil, err
	}
	s.target, err = loadgen.NewHTTP(loadgen.HTTPConfig{
		Header: http.Header{"Authorization": {at.Authorization}},
		URLFor: func(n uint64) string {
			return fmt.Sprintf("http://%s/api/v1/patients/P%06d", at.Address, 1+n*7919%auditPatients)
		},
	})
	return s, err
}

// load is one turn.
func (s *auditedService) load(ctx context.Context, clients int, d time.Duration) (results.Run, error) {
	res, err := loadgen.Run(ctx, loadgen.Config{Target: s.target, Interval: service.Step, Closed: &loadgen.Closed{Clients: clients, Duration: d}})
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Extra = map[string]float64{answers.Key: res.Goodput()}
	return run, nil
}

// stop ends the service and tells what is on record.
func (s *auditedService) stop(ctx context.Context) error {
	s.target.Close()
	var said Recorded
	exit, err := s.process.Stop(ctx, &said)
	for _, run := range s.runs {
		run.Killed, run.Process = exit.Killed, results.Process{ReuseRate: -1}
		run.Extra["commits"] = float64(said.Commits)
		if s.in.Audit {
			run.Extra[unrecorded.Key] = float64(said.Answers) - float64(min(said.Records, said.Verified, said.Answers))
		}
	}
	return err
}

// together is the turns of one cell as one run.
func together(turns []results.Run) results.Run {
	all := turns[0]
	good := []float64{turns[0].Extra[answers.Key]}
	for _, t := range turns[1:] {
		good = append(good, t.Extra[answers.Key])
		all.Offered, all.Elapsed, all.Series = all.Offered+t.Offered, all.Elapsed+t.Elapsed, nil
		all.Lag.Merge(t.Lag)
		for i := range all.Outcomes {
			all.Outcomes[i].Count += t.Outcomes[i].Count
			all.Outcomes[i].Latency.Merge(t.Outcomes[i].Latency)
		}
	}
	ledger.Keep(&all, answers.Key, good)
	return all
}

// auditedSpec is the service in a program of its own: it imports all that the service does.
func auditedSpec(in Audited) contestant.Spec {
	return contestant.Spec{Program: "audited", Role: RoleAudited, Input: in}
}

var (
	answers    = ledger.Extra("answered", "good answers a second")
	unrecorded = ledger.Extra("unrecorded", "answers without a record")
)

// ofAudit are the figures of a contestant under all numbers of clients.
func ofAudit(e *ledger.Evidence, s *scene, contestant string, f ledger.Figure) []ledger.Term {
	all := e.All(f, func(k ledger.Key) bool { return k.Setup == s.setup && k.Pattern == contestant })
	if len(all) == 0 {
		all = []ledger.Term{ledger.Of(ledger.Key{Setup: s.setup, Load: backToBack(auditClients[0]), Pattern: contestant}, f)} // which is said to be missing
	}
	return all
}

// overEach is a case for each database.
func overEach(value func(e *ledger.Evidence, s *scene) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, s := range databases[2:] {
			c := ledger.Case{Setup: s.title, Value: value(e, s)}
			if !slices.ContainsFunc(c.Value.Keys(), e.Has) {
				c.Open = s.missing(e)
			}
			out = append(out, c)
		}
		return out
	}
}
