package workerpool

import (
	"context"
	"errors"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
	awaits "github.com/spillway-go/spillway/internal/await"
)

// labelsOf returns the profile labels of the goroutines that have a function on their stacks. All
// of them have the same labels.
func labelsOf(t testing.TB, function string) string {
	var b strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		t.Error(err)
	}
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(block, function) {
			_, labels, _ := strings.Cut(block, "# labels: ")
			labels, _, _ = strings.Cut(labels, "\n")
			return labels
		}
	}
	return "no such goroutine"
}

// labelsHere returns the profile labels of its caller's goroutine.
func labelsHere(t testing.TB) string { return labelsOf(t, "workerpool.labelsHere") }

const ofMail = `{"pool":"mail", "priority":"normal"}`

// The labels of one request once stayed with the worker. Later jobs of other requests appeared in
// the profile under the labels of the first request, and the pool's labels were gone.
func TestProfileLabelsOfAJobEndWithIt(t *testing.T) {
	patient := pprof.WithLabels(context.Background(), pprof.Labels("patient", "4711"))
	step := pprof.Labels("step", "render")
	for name, job := range map[string]struct {
		ctx  context.Context
		run  Job
		want string // labels of the job at its start
	}{
		"labels on both sides": {patient, func(ctx context.Context) error {
			pprof.Do(ctx, step, func(context.Context) {})
			return nil
		}, `{"patient":"4711", "pool":"mail", "priority":"normal"}`},
		"a request's labels under another context": {context.Background(), func(context.Context) error {
			pprof.Do(patient, step, func(context.Context) {})
			return nil
		}, ofMail},
		"labels of the job's own": {context.Background(), func(ctx context.Context) error {
			pprof.Do(ctx, step, func(context.Context) {})
			return nil
		}, ofMail},
		"labels that are not taken back": {context.Background(), func(context.Context) error {
			pprof.SetGoroutineLabels(patient)
			return nil
		}, ofMail},
		"an error": {patient, func(context.Context) error { return errors.New("no such patient") }, `{"patient":"4711", "pool":"mail", "priority":"normal"}`},
		"a panic": {context.Background(), func(context.Context) error {
			pprof.SetGoroutineLabels(patient)
			panic("no such patient")
		}, ofMail},
		"the end of the goroutine": {context.Background(), func(context.Context) error {
			pprof.SetGoroutineLabels(patient)
			runtime.Goexit()
			return nil
		}, ofMail},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool(t, Config{Name: "mail", MaxWorkers: 1, OnDone: func(Result) {}})
			for range 3 { // the first starts the worker, the second finds it
				var during, after string
				err := p.Submit(job.ctx, func(ctx context.Context) error {
					during = labelsHere(t)
					return job.run(ctx)
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Do(context.Background(), p, func(context.Context) (int, error) { after = labelsHere(t); return 0, nil }); err != nil {
					t.Fatal(err)
				}
				if during != job.want || after != ofMail {
					t.Fatalf("the job had the labels %s, the next one %s", during, after)
				}
			}
		})
	}
}

// A worker once had the labels of the goroutine that caused its start, and after a job the labels
// that the job had left.
func TestAWorkerWithoutAJobHasOnlyItsPoolsLabels(t *testing.T) {
	p := pool(t, Config{Name: "mail", MaxWorkers: 1})
	pprof.Do(t.Context(), pprof.Labels("patient", "4711"), func(ctx context.Context) {
		if _, err := Do(ctx, p, func(context.Context) (int, error) { return 0, nil }); err != nil {
			t.Fatal(err)
		}
	})
	var got string
	awaits.True(t, "a worker with the labels of the pool alone, not "+got, func() bool {
		got = labelsOf(t, "workerpool.(*worker).work")
		return got == `{"pool":"mail"}`
	})
}

// OnDone once ran for a cancelled job under the labels of the job before.
func TestOnDoneRunsUnderTheLabelsOfItsJob(t *testing.T) {
	gone := make(chan string, 1)
	p := pool(t, Config{Name: "mail", MaxWorkers: 1, OnDone: func(r Result) {
		if !r.Started {
			gone <- labelsHere(t)
		}
	}})
	ctx, cancel := context.WithCancel(pprof.WithLabels(t.Context(), pprof.Labels("patient", "815")))
	patient := pprof.WithLabels(t.Context(), pprof.Labels("patient", "4711"))
	hold := make(chan struct{})
	if err := p.Submit(patient, func(context.Context) error { <-hold; return nil }); err != nil {
		t.Fatal(err)
	}
	noError(t, p.Submit(ctx, nothing))
	cancel()
	close(hold)
	if got := awaits.Receive(t, "the end of the job that was cancelled", gone); got != `{"patient":"815", "pool":"mail", "priority":"normal"}` {
		t.Error(got)
	}
}

// Labels are found through contexts that cannot be compared. The pool's labels override labels of
// the same name.
func TestLabelsOfAContextThatCannotBeCompared(t *testing.T) {
	p := pool(t, Config{Name: "mail", MaxWorkers: 1})
	plain := incomparable{context.Background(), []int{1}}
	low := incomparable{pprof.WithLabels(spillway.WithPriority(t.Context(), spillway.Low), pprof.Labels("pool", "of another layer", "route", "/x")), []int{1}}
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{{plain, ofMail}, {plain, ofMail}, {low, `{"pool":"mail", "priority":"low", "route":"/x"}`}, {low, `{"pool":"mail", "priority":"low", "route":"/x"}`}, {plain, ofMail}} {
		got, err := Do(c.ctx, p, func(context.Context) (string, error) { return labelsHere(t), nil })
		if err != nil || got != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
	}
}

type incomparable struct {
	context.Context
	of []int
}
