package app

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
)

// withoutPassword returns the address without its password, and the password.
func withoutPassword(t *testing.T, address string) (bare, password string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	password, _ = u.User.Password()
	u.User = url.User(u.User.Username())
	return u.String(), password
}

func TestServeFromPostgres(t *testing.T) {
	c := quick()
	var password string
	c.Store.Kind, password = withoutPassword(t, postgrestest.New(t, 0).URL)
	c.Store.PasswordFile = filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(c.Store.PasswordFile, []byte(password+"\n"), 0o600))
	c.Store.Connections, c.Admin.Addr = 3, "127.0.0.1:0"
	r := start(t, c)
	if status, body := r.get(t, "/api/v1/patients/P000042"); status != 200 || !strings.Contains(body, `"id":"P000042"`) {
		t.Errorf("%d %s", status, body)
	}
	await.True(t, "healthy", func() bool { // it asks the database, which has a second
		status, body := r.operate(t, "/health")
		if status != 200 {
			t.Logf("health %d %s", status, body)
		}
		return status == 200
	})
	_, metrics := r.operate(t, "/metrics")
	for _, line := range []string{
		"patientapi_database_max_connections 3",
		"patientapi_database_wait_seconds 0", "patientapi_database_waiting 0",
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
	report, err := r.report(t)
	assert.NoError(t, err)
	if report.Store != "postgres" || report.Connections == nil || report.Connections.Max != 3 || report.Connections.Peak < 1 || report.Connections.Peak > 3 {
		t.Errorf("%+v, connections %+v", report, report.Connections)
	}
	if said := r.stderr.String(); !strings.Contains(said, "100 of 100 patients") || strings.Contains(said, password) || strings.Contains(said, c.Store.Kind) {
		t.Errorf("said %s", said)
	}
}

func TestPasswordOfTheStoreOnTheCommandLineIsRefused(t *testing.T) {
	for _, address := range []string{
		"postgres://u:opensesame@127.0.0.1:1/d", "postgresql://u:open@sesame@127.0.0.1/d", "postgres://127.0.0.1/d?user=u&password=opensesame",
		"postgres://127.0.0.1/d?user=u&%70assword=opensesame", "postgres://127.0.0.1/d?pass%77ord=opensesame&user=u", "postgres://127.0.0.1/d?user=u&sslpassword=opensesame",
	} {
		c := quick()
		c.Store.Kind = address
		for _, line := range [][]string{{"patientapi", "--store", address}, {"patientapi", "--store=" + address, "--json"}} {
			err := c.hidesPassword(line)
			if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "SPILLWAY_STORE") || !strings.Contains(err.Error(), "--store-password-file") ||
				strings.Contains(err.Error(), "sesame") {
				t.Errorf("%v", err)
			}
		}
		if err := c.hidesPassword([]string{"patientapi"}); err != nil {
			t.Errorf("from the environment: %v", err)
		}
	}
	for _, address := range []string{"postgres://u@127.0.0.1:1/d", "postgres://u@127.0.0.1:1/d?passfile=/run/secrets/pgpass", "postgres://u@127.0.0.1:1/d?application_name=password"} {
		c := quick()
		c.Store.Kind = address
		if err := c.hidesPassword([]string{"patientapi", "--store", address}); err != nil {
			t.Errorf("without a password: %v", err)
		}
	}
}
