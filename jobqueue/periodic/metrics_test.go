package periodic

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/metricstest"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func TestMetricsShowWhatStatsHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &away{Queue: opened(t, memory.Config{})}
		s, err := New(Config{Queue: q, Entries: []Entry{each(t, "0 * * * *", 0)}})
		check(t, err)
		source := Metrics("reports", s)
		if kind, name := source.Label(); kind != "scheduler" || name != "reports" {
			t.Errorf("%s %s", kind, name)
		}
		shown := func() map[string]float64 { return metricstest.Shown(t, source, "spillway.jobqueue.periodic.") }
		want := map[string]float64{"instants tidy stored": 0, "instants tidy duplicate": 0, "failures tidy": 0, "passed tidy": 0}
		if got := shown(); !maps.Equal(got, want) { // no times
			t.Errorf("%v", got)
		}
		p := begin(t, q, 0, s.entries...)
		source = Metrics("reports", p.Scheduler)
		until("1:01")
		q.fail(jobqueue.ErrUnavailable)
		until("2:02")
		p.set(-time.Hour)
		q.fail(nil)
		until("2:59")
		want = map[string]float64{
			"instants tidy stored": 2, "instants tidy duplicate": 0, "failures tidy": 61, "passed tidy": 1,
			"last tidy": float64(midnight.Add(time.Hour).Unix()), "next tidy": float64(midnight.Add(2 * time.Hour).Unix()),
		}
		if got := shown(); !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
		_ = p.stop()
	})
}
