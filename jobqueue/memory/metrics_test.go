package memory_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/metricstest"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func TestMetricsShowWhatStatsHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		source := jobqueue.Metrics("mail", q)
		if kind, name := source.Label(); kind != "queue" || name != "mail" {
			t.Errorf("%s %s", kind, name)
		}
		for _, job := range []jobqueue.Job{{Key: "a"}, {Key: "a"}, {Key: "bad"}, {Key: "later", Delay: time.Hour}} {
			if _, err := q.Enqueue(t.Context(), job); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]float64{
			"engine_away": 0, "running": 0,
			"jobs ready": 2, "jobs delayed": 1, "jobs in_flight": 0, "jobs dead": 0,
			"enqueued stored": 3, "enqueued duplicate": 1, "enqueued refused": 0,
			"runs done": 0, "runs retried": 0, "runs deferred": 0, "runs buried": 0, "runs lost": 0,
		}
		if got := metricstest.Shown(t, source, "spillway.jobqueue."); !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = q.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error {
			if d.Key == "bad" {
				return jobqueue.Dead("bad")
			}
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		want["jobs ready"], want["jobs dead"], want["runs done"], want["runs buried"] = 0, 1, 1, 1
		if got := metricstest.Shown(t, source, "spillway.jobqueue."); !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
		// Zeros would look like an empty queue.
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		maps.DeleteFunc(want, func(name string, _ float64) bool { return strings.HasPrefix(name, "jobs ") })
		want["engine_away"] = 1
		if got := metricstest.Shown(t, source, "spillway.jobqueue."); !maps.Equal(got, want) { // a counter that is absent may restart from zero
			t.Errorf("closed: %v", got)
		}
	})
}
