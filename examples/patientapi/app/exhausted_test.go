package app

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
)

// load asks for a patient from many clients at once, until it is stopped.
func (r *running) load(t *testing.T) (stop func()) {
	busy, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 40 {
		clients.Go(func() {
			for busy.Err() == nil {
				if resp, err := http.DefaultClient.Do(asked(busy, "http://"+r.addr+"/api/v1/patients/P000042")); err == nil {
					resp.Body.Close()
				}
			}
		})
	}
	return func() { cancel(); clients.Wait() }
}

func (r *running) recorded(t *testing.T) bool {
	status, _ := r.get(t, "/api/v1/patients/P000042")
	return status == 200
}

// A role without connections left took the audit of a service that answers nothing
// without it: for good, where the lookups of the same service kept all that there were.
// Now it says so while it lasts, and ends by itself.
func TestTheAuditComesBackWhenTheRoleHasConnectionsAgain(t *testing.T) {
	const lookups, neighbours = 6, 1
	const all, left = lookups + 2 + neighbours, lookups + neighbours // no more than lookups have taken
	t.Parallel()
	c, db := quick(), postgrestest.New(t, all)
	c.Pattern.Name, c.Store.Kind, c.Store.Connections, c.Admin.Addr = "naive", db.URL, lookups, "127.0.0.1:0"
	c.Audit.Mode, c.Audit.FailClosed = auditOn, true
	c.Deadline.Timeout = 5 * time.Second
	r := start(t, c)
	stop := r.load(t)
	defer stop()
	await.True(t, "lookups have all their connections", func() bool { return r.metric(t, "patientapi_database_connects_total") >= lookups })
	stop()
	neighbour, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer neighbour.Close(context.WithoutCancel(t.Context()))
	require.NoError(t, db.Limit(t.Context(), 1))
	if _, err := neighbour.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
				WHERE usename = current_user AND application_name = 'patientapi audit'`); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the health says why nothing is recorded", func() bool {
		if r.recorded(t) {
			t.Error("answered without a record")
		}
		status, body := r.operate(t, "/health")
		return status == 503 && strings.Contains(body, "too many connections for the role: raise its CONNECTION LIMIT or lower --connections (SQLSTATE 53300)")
	})
	if status, body := r.get(t, "/readyz"); status != 503 || !strings.Contains(body, "on record") {
		t.Errorf("ready: %d %s", status, body)
	}
	if _, metrics := r.operate(t, "/metrics"); !strings.Contains(metrics, "\npatientapi_audit_failing 1\n") {
		t.Error("the metrics do not say that the audit fails")
	}
	require.NoError(t, db.Limit(t.Context(), left))
	await.True(t, "it is ready, though nobody asks for data", func() bool {
		status, _ := r.get(t, "/readyz")
		return status == 200
	})
	await.True(t, "it answers, as it is ready", func() bool { return r.recorded(t) })
	await.True(t, "it is healthy", func() bool { // it asks the database, which has a second
		status, body := r.operate(t, "/health")
		if status != 200 {
			t.Logf("health: %d %s", status, body)
		}
		return status == 200
	})
	report, err := r.report(t)
	if err != nil || report.Audit.Lost != 0 || report.Audit.Failing {
		t.Errorf("%v, %+v", err, report.Audit)
	}
}
