package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/internal/await"
)

// quick is a command for tests: a free port, a store without latency, and nothing that
// a busy machine could be too slow for.
func quick() Command {
	c := Default()
	c.Listen.Addr, c.Store.Kind, c.Store.Patients, c.JSON = "127.0.0.1:0", "simulated", 100, true
	c.Faults.MinLatency, c.Faults.MaxLatency, c.Faults.ErrorRate, c.Pattern.SlowStart = 0, 0, 0, 0
	c.Cache.Timeout = await.Limit // nobody waits for it, except where the cache hangs
	c.Deadline, c.Auth.DevelopmentKeys, c.Audit.Mode = DeadlineFlags{}, keys, auditOff
	return c
}

// running is a command under way.
type running struct {
	addr   string
	admin  string
	stop   context.CancelFunc
	lines  *bufio.Reader
	stderr bytes.Buffer
	ended  chan struct{}
	err    error // of the command, once it has ended
}

func start(t *testing.T, c Command) *running {
	t.Helper()
	return startNoticed(t, c, time.Sleep)
}

// startNoticed is start with a wait of the test's own between not ready and draining.
func startNoticed(t *testing.T, c Command, notice func(time.Duration)) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	r := &running{stop: stop, lines: bufio.NewReader(out), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = c.serve(ctx, in, &r.stderr, notice)
		in.Close()
	}()
	t.Cleanup(func() { // before the folders and the databases of the test are removed, which the command uses
		stop()
		out.Close()
		await.Receive(t, "the command ends", r.ended)
	})
	line, err := r.lines.ReadString('\n')
	if err != nil {
		<-r.ended
		t.Fatalf("no first line: %v, %v", err, r.err)
	}
	var ready Ready
	if err := json.Unmarshal([]byte(line), &ready); err != nil || !ready.Ready || ready.PID != os.Getpid() {
		t.Fatalf("first line %q: %v", line, err)
	}
	r.addr, r.admin = ready.Addr, ready.Admin
	return r
}

func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return get(t, "http://"+r.addr+path)
}

// operate asks the admin listener.
func (r *running) operate(t *testing.T, path string) (int, string) {
	t.Helper()
	return get(t, "http://"+r.admin+path)
}

// metric returns the whole number that a metric has, whatever its labels are; -1 if there is none.
func (r *running) metric(t *testing.T, name string) int {
	t.Helper()
	_, metrics := r.operate(t, "/metrics")
	found := regexp.MustCompile(`(?m)^` + name + `(?:\{.*\})? ([0-9]+)$`).FindStringSubmatch(metrics)
	if found == nil {
		return -1
	}
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(asked(t.Context(), url))
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// end stops the command.
func (r *running) end(t *testing.T) {
	t.Helper()
	_, err := r.report(t)
	assert.NoError(t, err)
}

// report stops the command and returns its last line and its error.
func (r *running) report(t *testing.T) (Report, error) {
	t.Helper()
	r.stop()
	rest, err := io.ReadAll(r.lines)
	require.NoError(t, err)
	var report Report
	if err := json.Unmarshal(rest, &report); err != nil {
		t.Fatalf("the rest of stdout is not one report: %v\n%s", err, rest)
	}
	await.Receive(t, "the command ends", r.ended)
	return report, r.err
}

func TestServeReportsWhatItDid(t *testing.T) {
	for i, pattern := range patterns.Names() {
		store := []string{"simulated", "sqlite"}[i%2]
		t.Run(pattern+" "+store, func(t *testing.T) {
			c := quick()
			c.Pattern.Name, c.Store.Kind, c.Store.DB = pattern, store, filepath.Join(t.TempDir(), "patients.db")
			r := start(t, c)
			for range 5 {
				if status, body := r.get(t, "/api/v1/patients/P000042"); status != 200 || !strings.Contains(body, `"id":"P000042"`) {
					t.Errorf("%d %s", status, body)
				}
			}
			r.get(t, "/api/v1/patients/P000101")
			report, err := r.report(t)
			assert.NoError(t, err)
			if q := report.Requests; q.OK != 5 || q.BadInput != 1 || q.Error+q.Rejected+q.Timeout+q.Abandoned != 0 {
				t.Errorf("requests %+v", q)
			}
			if s := report.Runner; s.Pattern != pattern || s.Offered != 6 || s.Completed != 6 || s.InFlight != 0 {
				t.Errorf("runner %+v", s)
			}
			if u := report.Process; u.Mallocs == 0 || u.AllocBytes == 0 || u.PeakGoroutines == 0 {
				t.Errorf("process %+v", u)
			}
			if report.StoreCalls != 6 || report.PeakStoreCalls != 1 || report.Abandoned != "" {
				t.Errorf("report %+v", report)
			}
			if (report.Connections != nil) != (store == "sqlite") || (report.Runner.ReuseRate >= 0) != (pattern == patterns.Optimized) {
				t.Errorf("report %+v", report)
			}
			if _, err := net.Dial("tcp", r.addr); err == nil {
				t.Error("still listening after the end")
			}
		})
	}
}

func TestShutdownThatRunsOutOfTimeSaysWhatItLeft(t *testing.T) {
	c := quick()
	c.Faults.MinLatency, c.Faults.MaxLatency, c.Deadline.Timeout, c.Shutdown.Timeout = time.Hour, time.Hour, 0, time.Millisecond
	c.Admin.Addr = "127.0.0.1:0"
	r := start(t, c)
	var wg sync.WaitGroup
	wg.Go(func() {
		if resp, err := http.DefaultClient.Do(asked(t.Context(), "http://"+r.addr+"/api/v1/patients/P000001")); err == nil {
			resp.Body.Close()
		}
	})
	await.True(t, "it is inside", func() bool {
		_, health := r.operate(t, "/health")
		return strings.Contains(health, `"in_flight":1`)
	})
	report, err := r.report(t)
	wg.Wait()
	if err == nil || errors.Is(err, ErrUsage) || !strings.Contains(report.Abandoned, "--shutdown-timeout") {
		t.Errorf("%v, abandoned %q", err, report.Abandoned)
	}
}

func TestBadInputIsOneLineAndLeavesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o644))
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, bytes.Repeat([]byte("text "), 1000), 0o600))
	for want, change := range map[string]func(*Command){
		"unknown store":              func(c *Command) { c.Store.Kind = "oracle" },
		"bulk-deadline is -1s":       func(c *Command) { c.Deadline.Bulk = -time.Second },
		"max-connections is 0":       func(c *Command) { c.Listen.MaxConnections = 0 },
		"admin-addr is not":          func(c *Command) { c.Admin.Addr = "nonsense" },
		"for a Redis":                func(c *Command) { c.Cache.PasswordFile = file },
		"for a PostgreSQL":           func(c *Command) { c.Store.Connections = 5 },
		"no such file":               func(c *Command) { c.Cache.URL, c.Cache.PasswordFile = "redis://127.0.0.1", file+"s" },
		"give --jwks":                func(c *Command) { c.Auth.Issuer = "someone" },
		"give --issuer":              func(c *Command) { c.Auth.JWKS, c.Auth.DevelopmentKeys = file, "" },
		"no JSON Web Key Set":        func(c *Command) { c.Auth = AuthFlags{JWKS: file, Issuer: "a", Audience: "b"} },
		"give both, or neither":      func(c *Command) { c.TLS.Cert = file },
		"failed to find any PEM":     func(c *Command) { c.TLS = TLSFlags{file, file} },
		"want on or off":             func(c *Command) { c.Audit.Mode = "maybe" },
		"takes neither --audit-db":   func(c *Command) { c.Audit.DB = file },
		"want 16 or more":            func(c *Command) { c.Audit = AuditFlags{Mode: auditOn, KeyFile: file} },
		"not a database":             func(c *Command) { c.Audit = AuditFlags{Mode: auditOn, DB: text} },
		"no queue for them":          func(c *Command) { c.Exports.Dir = filepath.Join(dir, "exports") },
		"http://":                    func(c *Command) { c.Traces.Endpoint = "collector:4318" },
		"address already in use":     func(c *Command) { c.Listen.Addr = taken.Addr().String() },
		"choose another with --addr": func(c *Command) { c.Listen.Addr = "nonsense" },
		"not a patient database":     func(c *Command) { c.Store.Kind, c.Store.DB = "sqlite", file },
		// Patients can be made again, and are removed for it.
		"--audit-db": func(c *Command) {
			patients := t.TempDir()
			c.Store.Kind, c.Store.DB = sqliteStore, filepath.Join(patients, "one.db")
			c.Audit = AuditFlags{Mode: auditOn, DB: patients + "/./one.db"}
		},
	} {
		c := quick()
		change(&c)
		var stdout, stderr bytes.Buffer
		err := c.Run(t.Context(), &stdout, &stderr)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want one line with %q, got %v", want, err)
		}
		if stdout.Len() > 0 {
			t.Errorf("%s: wrote %s", want, &stdout)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
