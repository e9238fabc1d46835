package outbox

import (
	"maps"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/metricstest"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func TestMetricsShowWhatStatsHas(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		b := open(t, s, inMemory(t, memory.Config{MaxPayload: 10}), Config{})
		source := Metrics("orders", b)
		if kind, name := source.Label(); kind != "outbox" || name != "orders" {
			t.Errorf("%s %s", kind, name)
		}
		commit(t, b, jobqueue.Job{Key: "a"}, jobqueue.Job{Key: "a"}, jobqueue.Job{Payload: make([]byte, 11)})
		if _, err := b.db.ExecContext(t.Context(), "UPDATE spillway_outbox SET created = created - 3600"); err != nil {
			t.Fatal(err)
		}
		if got := metricstest.Shown(t, source, "spillway.jobqueue.outbox."); got["jobs waiting"] != 3 || got["oldest"] < 3600 || got["oldest"] > 3700 {
			t.Errorf("%v", got)
		}
		stop := begin(t, b)
		empty(t, b)
		_ = stop()
		want := map[string]float64{
			"jobs waiting": 0, "jobs refused": 1, "oldest": 0, "relayed stored": 1, "relayed duplicate": 1, "relayed refused": 1, "failures": 0, "database_away": 0,
		}
		if got := metricstest.Shown(t, source, "spillway.jobqueue.outbox."); !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
		// Zeros would look like an empty outbox.
		_ = b.db.Close()
		maps.DeleteFunc(want, func(name string, _ float64) bool { return strings.HasPrefix(name, "jobs ") || name == "oldest" })
		want["database_away"] = 1
		if got := metricstest.Shown(t, source, "spillway.jobqueue.outbox."); !maps.Equal(got, want) {
			t.Errorf("closed: %v", got)
		}
	})
}
