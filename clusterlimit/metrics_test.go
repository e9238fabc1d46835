package clusterlimit

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMetricsShowWhatStatsHas(t *testing.T) {
	m := join(t, Config{URL: engine(t), Name: "backend", Concurrency: 12, Rate: 40, Lease: time.Hour})
	source := Metrics(m)
	if kind, name := source.Label(); kind != "budget" || name != "backend" {
		t.Errorf("%s %s", kind, name)
	}
	read := func() map[string]float64 {
		all := map[string]float64{}
		for _, s := range source.Read() {
			d := source.Metrics()[s.Metric]
			if len(s.Labels) != len(d.Labels) {
				t.Errorf("%s has the labels %q, want %q", d.Name, s.Labels, d.Labels)
			}
			all[strings.Join(append([]string{strings.TrimPrefix(d.Name, "spillway.budget.")}, s.Labels...), " ")] = s.Value
		}
		return all
	}
	for range 100 { // more than a second permits
		_ = m.Allow(1)
	}
	got, s := read(), m.Stats()
	for name, want := range map[string]float64{
		"slots": 12, "rate": 40, "standing held": 1, "standing kept": 0, "standing over": 0, "standing left": 0, "members": 1,
		"requests admitted": float64(s.Admitted), "requests refused": float64(100 - s.Admitted),
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

func TestTheDocumentationHasEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../docs/operate/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range described {
		if name := strings.ReplaceAll(m.Name, ".", "_"); !strings.Contains(string(page), "`"+name) {
			t.Errorf("%s is not in metrics.md", name)
		}
	}
}
