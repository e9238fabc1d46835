package db

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
	"github.com/spillway-go/spillway/loadgen"
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
)

func auditSetup(engine string) string { return "the patient API over " + engine }

func auditKey(engine string, clients int, contestant string) ledger.Key {
	return ledger.Key{Setup: auditSetup(engine), Load: fmt.Sprintf("%d clients back to back", clients), Pattern: contestant}
}

// turnsOfAudit is how many turns the time of a cell is divided into.
const turnsOfAudit = 4

// auditKeys are the cells over one database, each with its number of clients; the last is
// that of the overloaded service.
func (c Config) auditKeys(engine string) (keys []ledger.Key, clients []int) {
	most := slices.Max(c.AuditClients)
	for _, n := range c.AuditClients {
		keys = append(append(keys, auditKey(engine, n, Unaudited).AndTwin(true)...), auditKey(engine, n, Audit))
		clients = append(clients, n, n, n)
	}
	return append(keys, auditKey(engine, floods*most, Flooded)), append(clients, floods*most)
}

// audits is the group that measures what audit costs over one database.
func (c Config) audits(engine string) experiment.Group {
	keys, clients := c.auditKeys(engine)
	return experiment.Group{
		Keys: keys, Label: engine + " · the service with and without audit",
		Expect: time.Duration(len(keys))*c.AuditTime + 4*(c.AuditWarmUp+time.Second),
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			last := len(keys) - 1
			runs, err := c.alternate(ctx, engine, keys[:last], clients[:last], t.Seed)
			if err != nil {
				return nil, err
			}
			flooded, err := c.overloaded(ctx, engine, clients[last])
			return append(runs, flooded), err
		},
	}
}

// alternate runs the service with audit and, twice, without, all at one time, and loads one
// of them after the other in short turns: what the machine does besides meets all alike.
func (c Config) alternate(ctx context.Context, engine string, keys []ledger.Key, clients []int, seed uint64) (runs []results.Run, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the services, too, if the run fails
	services := map[ledger.Key]*auditedService{}
	of := func(k ledger.Key) ledger.Key { return ledger.Key{Pattern: k.Pattern, Twin: k.Twin} }
	for _, k := range keys[:3] {
		s, err := c.start(ctx, engine, Audited{Patients: auditPatients, Audit: k.Pattern == Audit})
		if err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, s.drop()) }()
		services[of(k)] = s
		if _, err := s.load(ctx, clients[0], c.AuditWarmUp); err != nil {
			return nil, err
		}
	}
	turns := make([][]results.Run, len(keys))
	for round := range turnsOfAudit {
		for _, i := range c.order(len(keys), seed+uint64(round)) {
			turn, err := services[of(keys[i])].load(ctx, clients[i], c.AuditTime/turnsOfAudit)
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
func (c Config) overloaded(ctx context.Context, engine string, clients int) (run results.Run, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s, err := c.start(ctx, engine, Audited{Patients: auditPatients, Audit: true, Adaptive: true})
	if err != nil {
		return run, err
	}
	defer func() { err = cmp.Or(err, s.drop()) }()
	if run, err = s.load(ctx, clients, c.AuditWarmUp+c.AuditTime); err != nil {
		return run, err
	}
	run = together([]results.Run{run})
	s.runs = []*results.Run{&run}
	return run, s.stop(ctx)
}

// auditedService is a service that runs over a database of its own.
type auditedService struct {
	in      Audited
	process *contestant.Process
	target  *loadgen.HTTP
	drop    func() error   // its database
	runs    []*results.Run // whose records it tells at its end
}

func (c Config) start(ctx context.Context, engine string, in Audited) (_ *auditedService, err error) {
	s := &auditedService{in: in, drop: func() error { return nil }}
	if engine == PostgreSQL {
		database, err := c.Postgres.Open(ctx, postgres.Population{})
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
	run.Extra = map[string]float64{answered.Key: res.Goodput()}
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
	good := []float64{turns[0].Extra[answered.Key]}
	for _, t := range turns[1:] {
		good = append(good, t.Extra[answered.Key])
		all.Offered, all.Elapsed, all.Series = all.Offered+t.Offered, all.Elapsed+t.Elapsed, nil
		all.Lag.Merge(t.Lag)
		for i := range all.Outcomes {
			all.Outcomes[i].Count += t.Outcomes[i].Count
			all.Outcomes[i].Latency.Merge(t.Outcomes[i].Latency)
		}
	}
	ledger.Keep(&all, answered.Key, good)
	return all
}

// auditedSpec is the service in a program of its own: it imports all that the service does.
func auditedSpec(in Audited) contestant.Spec {
	return contestant.Spec{Program: "audited", Role: RoleAudited, Input: in}
}

var (
	answered   = ledger.Extra("answered", "good answers a second")
	unrecorded = ledger.Extra("unrecorded", "answers without a record")
)
