package patterns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// server is the contestant of the set-up "for real": the service's own HTTP API
// over SQLite. It is ready when it listens.
func server(ctx context.Context, contestantJob *contestant.Job) (any, error) {
	var j plan.Job
	if err := contestantJob.Input(&j); err != nil {
		return nil, err
	}
	db, err := sqlite.OpenSet(ctx, j.Database, sqlite.Set{Patients: j.Patients, Seed: 1}, sqlite.Options{Readers: plan.MaxConnections}, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	store, err := slow(j, db)
	if err != nil {
		return nil, err
	}
	r, err := runner(j)
	if err != nil {
		return nil, err
	}
	api := httpapi.New(httpapi.Config{
		Runner: r, Patients: store, Clinicians: directory.Alone(store), Health: store, Timeout: plan.RequestTimeout,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	api.SetReady(true)

	p := usage.Start()
	if err := contestantJob.Ready("http://" + listener.Addr().String()); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
	case err := <-failed:
		return nil, err
	}
	used := p.Stop()
	run := results.Run{Process: experiment.Process(used), Extra: map[string]float64{"connections": float64(db.Connections().Open)}} // it keeps all
	plan.AddStack(&run, used)
	run.Process.PeakStoreCalls, run.Process.ReuseRate = store.PeakCalls(), r.Stats().ReuseRate
	if run.Process.ReuseRate >= 0 {
		run.Extra["reuse_true"] = run.Process.ReuseRate
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return run, errors.Join(r.Drain(drain), web.Shutdown(drain))
}
