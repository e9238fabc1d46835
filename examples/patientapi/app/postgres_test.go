package app

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/internal/await"
)

// withoutPassword returns the address without its password, and the password.
func withoutPassword(t *testing.T, address string) (bare, password string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, _ = u.User.Password()
	u.User = url.User(u.User.Username())
	return u.String(), password
}

func TestServeFromPostgres(t *testing.T) {
	c := quick()
	var password string
	c.Store.Kind, password = withoutPassword(t, postgrestest.New(t, 0).URL)
	c.Store.PasswordFile = filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(c.Store.PasswordFile, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
		"patientapi_database_max_connections 3", `patientapi_database_connections{state="idle"} 1`,
		"patientapi_database_wait_seconds 0", "patientapi_database_waiting 0",
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
	report, err := r.report(t)
	if err != nil {
		t.Error(err)
	}
	if report.Store != "postgres" || report.Connections == nil || report.Connections.Max != 3 || report.Connections.Peak != 1 {
		t.Errorf("%+v, connections %+v", report, report.Connections)
	}
	if said := r.stderr.String(); !strings.Contains(said, "100 of 100 patients") || strings.Contains(said, password) || strings.Contains(said, c.Store.Kind) {
		t.Errorf("said %s", said)
	}
}

// What cannot be right is found at the start, in one line without the address.
func TestBadStoreSettingsDoNotShowThePassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*StoreFlags){
		"unknown store":       func(f *StoreFlags) { f.Kind = "postgress://u:opensesame@h/d" },
		"cannot be used":      func(f *StoreFlags) { f.Kind = "postgres://u:opensesame@h:port/d" },
		"connection refused":  func(f *StoreFlags) { f.Kind = "postgres://u:opensesame@127.0.0.1:1/d" },
		"-1 connections":      func(f *StoreFlags) { f.Kind, f.Connections = "postgres://u:opensesame@127.0.0.1:1/d", -1 },
		"is for a PostgreSQL": func(f *StoreFlags) { f.PasswordFile = file },
		"for a PostgreSQL":    func(f *StoreFlags) { f.Connections = 5 },
		"is empty":            func(f *StoreFlags) { f.Kind, f.PasswordFile = "postgres://u@127.0.0.1:1/d", file },
	} {
		c := quick()
		change(&c.Store)
		var out bytes.Buffer
		err := c.Run(t.Context(), &out, &out)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want one line with %q, got %v", want, err)
		}
		if strings.Contains(err.Error()+out.String(), "sesame") {
			t.Errorf("%s: %v %s", want, err, &out)
		}
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
