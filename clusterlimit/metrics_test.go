package clusterlimit

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/metricstest"
)

func TestMetricsShowWhatStatsHas(t *testing.T) {
	m := join(t, Config{URL: engine(t), Name: "backend", Concurrency: 12, Rate: 40, Lease: time.Hour})
	source := Metrics(m)
	if kind, name := source.Label(); kind != "budget" || name != "backend" {
		t.Errorf("%s %s", kind, name)
	}
	read := func() map[string]float64 { return metricstest.Shown(t, source, "spillway.budget.") }
	for range 100 { // more than a second permits
		_ = m.Allow(1)
	}
	got, s := read(), m.reading()
	for name, want := range map[string]float64{
		"slots": 12, "rate": 40, "standing held": 1, "standing kept": 0, "standing over": 0, "standing left": 0, "members": 1,
		"requests admitted": float64(s.admitted), "requests refused": float64(100 - s.admitted),
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if got["lease"] <= 0 || got["lease"] > 3600 || got["renewals renewed"] < 1 || len(got) != 13 {
		t.Errorf("%v", got)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := read(); got["standing left"] != 1 || got["standing held"] != 0 || got["slots"] != 0 || got["lease"] != 0 {
		t.Errorf("after Close: %v", got)
	}
}
