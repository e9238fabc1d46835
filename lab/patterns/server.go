package patterns

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sort"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	// RequestTimeout bounds one request of the set-up "for real".
	RequestTimeout = 30 * time.Second
	// MaxConnections is how many the database may have there: no fewer than a pool has
	// workers, so that the pattern bounds them.
	MaxConnections = 100
)

// serveAndLoad starts the server, loads it over HTTP from this process and stops it.
// If the server is killed, the run has the clients' results until then.
func (j Job) serveAndLoad(ctx context.Context) (results.Run, error) {
	var url string
	srv, err := contestant.Start(ctx, contestant.Spec{Program: program, Role: RoleServer, Input: j, MemoryCap: j.memory()}, &url)
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
	go func() { <-srv.Done(); stop() }()
	res, err := loadgen.Run(loading, loadgen.Config{
		Target: target, Timeout: RequestTimeout, Interval: seriesStep,
		Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Requests)},
	})
	if err != nil {
		return results.Run{}, err
	}
	target.Close()
	report := results.Run{Process: results.Process{ReuseRate: -1}}
	exit, err := srv.Stop(ctx, &report)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Params, run.Killed, run.Extra = j.Params(), exit.Killed, asCounted(&run)
	run.Process = report.Process
	run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
	maps.Copy(run.Extra, report.Extra)
	addMemory(run.Series, exit.Memory)
	if n := foreign.Load(); n > 0 {
		return run, fmt.Errorf("%d answers were not about the patient that was asked for", n)
	}
	return run, ctx.Err()
}

// httpTarget requests a patient and counts the good answers about another one. It
// counts them because the target keeps only its first error, and the store fails now
// and then.
func (j Job) httpTarget(url string) (target *loadgen.HTTP, foreign *atomic.Int64, err error) {
	foreign = new(atomic.Int64)
	target, err = loadgen.NewHTTP(loadgen.HTTPConfig{
		URLFor: func(n uint64) string { return url + "/api/v1/patients/" + j.ID(n) },
		Check: func(n uint64, _ int, body []byte) error {
			if !bytes.HasPrefix(body, []byte(`{"id":"`+j.ID(n)+`"`)) {
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
	for k := range series {
		i := sort.Search(len(memory)-1, func(i int) bool { return memory[i+1].At.Seconds() > series[k].At+offset })
		series[k].RSS = memory[i].RSS
	}
}
