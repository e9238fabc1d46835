package patterns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/probe"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// requestTimeout bounds one request of the set-up "for real".
const requestTimeout = 30 * time.Second

// served is what a server contestant reports when it is stopped.
type served struct {
	Usage          probe.Usage
	Stats          service.Stats
	PeakStoreCalls int
	Connections    sqlite.Connections
	StoreLatency   time.Duration // mean of the injected latency
}

// server is the contestant of the set-up "for real": the service's own HTTP API
// over SQLite. It is ready when it listens.
func server(ctx context.Context, contestantJob *contestant.Job) (any, error) {
	var j job
	if err := contestantJob.Input(&j); err != nil {
		return nil, err
	}
	db, err := sqlite.OpenSet(ctx, j.Database, j.set(), sqlite.Options{}, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	store, err := simulated.Inject(db, simulated.Config{
		MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed,
	})
	if err != nil {
		return nil, err
	}
	runner, err := service.New(j.Pattern, service.Config{
		Workers: j.Workers, QueueSize: j.QueueSize, QueueWait: j.QueueWait,
	})
	if err != nil {
		return nil, err
	}
	api := httpapi.New(httpapi.Config{
		Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store, Timeout: requestTimeout,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	api.SetReady(true)

	p := probe.Start()
	if err := contestantJob.Ready("http://" + listener.Addr().String()); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
	case err := <-failed:
		return nil, err
	}
	report := served{Usage: p.Stop(), Stats: runner.Stats(), PeakStoreCalls: store.PeakCalls(),
		Connections: db.Connections(), StoreLatency: store.MeanLatency()}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return report, errors.Join(runner.Drain(drain), web.Shutdown(drain))
}

func (j job) set() sqlite.Set { return sqlite.Set{Patients: j.Patients, Seed: 1} }

// serveAndLoad starts the server, loads it over HTTP from this process and stops it.
// If the server is killed, the run has the clients' results until then.
func serveAndLoad(ctx context.Context, j job, memoryCap uint64) (results.Run, error) {
	var url string
	srv, err := contestant.Start(ctx, contestant.Spec{Role: roleServer, Input: j, MemoryCap: memoryCap}, &url)
	if err != nil {
		return results.Run{}, err
	}
	target, foreign, err := j.httpTarget(url)
	if err != nil {
		return results.Run{}, err
	}
	defer target.Close()
	loading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-srv.Done():
			stop()
		case <-loading.Done():
		}
	}()
	res, err := loadgen.Run(loading, loadgen.Config{
		Target: target, Timeout: requestTimeout, Interval: seriesStep,
		Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Requests)},
	})
	if err != nil {
		return results.Run{}, err
	}
	target.Close()
	var report served
	exit, err := srv.Stop(ctx, &report)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Params, run.Killed = j.params(), exit.Killed
	run.Process = process(report.Usage)
	run.Process.ReuseRate = report.Stats.ReuseRate
	run.Process.PeakStoreCalls = report.PeakStoreCalls
	run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
	run.Extra = map[string]float64{
		"stack_kb": stackKB(report.Usage), "store_latency_ms": ms(report.StoreLatency),
		"database_connections": float64(report.Connections.Peak),
	}
	addMemory(run.Series, exit.Memory)
	if n := foreign.Load(); n > 0 {
		return run, fmt.Errorf("%d answers were not about the patient that was asked for", n)
	}
	return run, ctx.Err()
}

// httpTarget requests a patient and counts the good answers about another one. It
// counts them because the target keeps only its first error, and the store fails now
// and then.
func (j job) httpTarget(url string) (target *loadgen.HTTP, foreign *atomic.Int64, err error) {
	foreign = new(atomic.Int64)
	target, err = loadgen.NewHTTP(loadgen.HTTPConfig{
		URLFor: func(n uint64) string { return url + "/api/v1/patients/" + j.id(n) },
		Check: func(n uint64, _ int, body []byte) error {
			if !bytes.HasPrefix(body, []byte(`{"id":"`+j.id(n)+`"`)) {
				foreign.Add(1)
				return fmt.Errorf("request %d: an answer about another patient", n)
			}
			return nil
		},
	})
	return target, foreign, err
}

// addMemory adds the samples of the server's memory to the load's time line.
func addMemory(series []results.Point, memory []contestant.Memory) {
	if len(memory) == 0 || len(series) == 0 {
		return
	}
	// The load starts shortly after the process; the last sample is its end.
	offset := memory[len(memory)-1].At.Seconds() - series[len(series)-1].At
	i := 0
	for k := range series {
		for i+1 < len(memory) && memory[i+1].At.Seconds()-offset <= series[k].At {
			i++
		}
		series[k].RSS = memory[i].RSS
	}
}
