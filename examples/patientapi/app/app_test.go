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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
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
	ended  chan error
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
	r := &running{stop: stop, lines: bufio.NewReader(out), ended: make(chan error, 1)}
	go func() {
		err := c.serve(ctx, in, &r.stderr, notice)
		in.Close()
		r.ended <- err
	}()
	t.Cleanup(func() { stop(); out.Close() })
	line, err := r.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("no first line: %v, %v", err, <-r.ended)
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

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(asked(t.Context(), url))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// report stops the command and returns its last line and its error.
func (r *running) report(t *testing.T) (Report, error) {
	t.Helper()
	r.stop()
	rest, err := io.ReadAll(r.lines)
	if err != nil {
		t.Fatal(err)
	}
	var report Report
	if err := json.Unmarshal(rest, &report); err != nil {
		t.Fatalf("the rest of stdout is not one report: %v\n%s", err, rest)
	}
	return report, <-r.ended
}

func TestServeReportsWhatItDid(t *testing.T) {
	for _, pattern := range patterns.Names() {
		for _, store := range []string{"simulated", "sqlite"} {
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
				if err != nil {
					t.Error(err)
				}
				if q := report.Requests; q.OK != 5 || q.BadInput != 1 || q.Error+q.Rejected+q.Timeout+q.Abandoned != 0 {
					t.Errorf("requests %+v", q)
				}
				if s := report.Runner; s.Pattern != pattern || s.Offered != 6 || s.Completed != 6 || s.InFlight != 0 {
					t.Errorf("runner %+v", s)
				}
				if u := report.Process; u.Mallocs == 0 || u.AllocBytes == 0 || u.PeakGoroutines == 0 || u.Seconds <= 0 {
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
}

// Five clients ask until they are refused, or nobody listens any more. What was under way
// when the service was told to stop is answered: it and they count the same.
func TestShutdownFinishesRequestsUnderWay(t *testing.T) {
	c := quick()
	c.Faults.MinLatency, c.Faults.MaxLatency, c.Admin.Addr = 100*time.Millisecond, 100*time.Millisecond, "127.0.0.1:0"
	r := start(t, c)
	var wg sync.WaitGroup
	var answered atomic.Uint64
	for range 5 {
		client := connection(t)
		wg.Go(func() {
			for {
				if code, _ := status(t.Context(), client, r.addr, "/api/v1/patients/P000001"); code != http.StatusOK {
					return
				}
				answered.Add(1)
			}
		})
	}
	await.True(t, "all five are inside", func() bool {
		_, health := r.operate(t, "/health")
		return strings.Contains(health, `"in_flight":5`)
	})
	report, err := r.report(t)
	wg.Wait()
	if err != nil || report.Requests.OK != answered.Load() || report.Requests.OK < 5 {
		t.Errorf("%v, %+v; its clients have %d answers", err, report.Requests, answered.Load())
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

func TestNotReadyBeforeItStops(t *testing.T) {
	c := quick()
	c.Shutdown.DrainDelay = 500 * time.Millisecond
	waits, seen := make(chan time.Duration, 1), make(chan struct{})
	r := startNoticed(t, c, func(d time.Duration) { // as long as it takes on a busy machine
		waits <- d
		<-seen
	})
	if status, _ := r.get(t, "/readyz"); status != 200 {
		t.Errorf("serving, but not ready: %d", status)
	}
	r.stop()
	if d := <-waits; d != c.Shutdown.DrainDelay {
		t.Errorf("it waits for %v", d)
	}
	if status, _ := r.get(t, "/readyz"); status != 503 {
		t.Errorf("about to stop, /readyz says %d", status)
	}
	close(seen)
	if _, err := r.report(t); err != nil {
		t.Error(err)
	}
}

func TestEachClassHasItsDeadline(t *testing.T) {
	d := DeadlineFlags{Critical: time.Second, Normal: time.Minute, Bulk: time.Hour}
	if got := d.classes(); got.Critical != d.Critical || got.Normal != d.Normal || got.Bulk != d.Bulk {
		t.Errorf("%+v, want %+v", got, d)
	}
}

func TestBadInputIsOneLineAndLeavesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("text "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Command){
		"unknown pattern":         func(c *Command) { c.Pattern.Name = "actors" },
		"unknown store":           func(c *Command) { c.Store.Kind = "oracle" },
		"workers is 0":            func(c *Command) { c.Pattern.Workers = 0 },
		"workers is -3":           func(c *Command) { c.Pattern.Workers = -3 },
		"queue-size is -1":        func(c *Command) { c.Pattern.QueueSize = -1 },
		"queue-wait is -1s":       func(c *Command) { c.Pattern.QueueWait = -time.Second },
		"timeout is -1s":          func(c *Command) { c.Deadline.Timeout = -time.Second },
		"shutdown-timeout is -1s": func(c *Command) { c.Shutdown.Timeout = -time.Second },
		"bulk-deadline is -1s":    func(c *Command) { c.Deadline.Bulk = -time.Second },
		"slow-start is -1s":       func(c *Command) { c.Pattern.SlowStart = -time.Second },
		"drain-delay is -1s":      func(c *Command) { c.Shutdown.DrainDelay = -time.Second },
		"min-latency is -1s":      func(c *Command) { c.Faults.MinLatency = -time.Second },
		"above max-latency":       func(c *Command) { c.Faults.MinLatency = time.Second },
		"error-rate is 1.5":       func(c *Command) { c.Faults.ErrorRate = 1.5 },
		"patients is 0":           func(c *Command) { c.Store.Patients = 0 },
		"patients is 1000000":     func(c *Command) { c.Store.Patients = 1_000_000 },
		"cache-ttl is 0s":         func(c *Command) { c.Cache.TTL = 0 },
		"cache-timeout is 0s":     func(c *Command) { c.Cache.Timeout = 0 },
		"max-connections is 0":    func(c *Command) { c.Listen.MaxConnections = 0 },
		"admin-addr is not":       func(c *Command) { c.Admin.Addr = "nonsense" },
		"for a Redis":             func(c *Command) { c.Cache.PasswordFile = file },
		"no such file":            func(c *Command) { c.Cache.URL, c.Cache.PasswordFile = "redis://127.0.0.1", file+"s" },
		"give --jwks":             func(c *Command) { c.Auth.Issuer = "someone" },
		"give --issuer":           func(c *Command) { c.Auth.JWKS, c.Auth.DevelopmentKeys = file, "" },
		"give one of them": func(c *Command) {
			c.Auth = AuthFlags{JWKS: file, Issuer: "a", Audience: "b", KeyFolder: c.Auth.KeyFolder}
		},
		"no JSON Web Key Set":        func(c *Command) { c.Auth = AuthFlags{JWKS: file, Issuer: "a", Audience: "b"} },
		"http from this machine":     func(c *Command) { c.Auth = AuthFlags{JWKS: "http://issuer.example/", Issuer: "a", Audience: "b"} },
		"give both, or neither":      func(c *Command) { c.TLS.Cert = file },
		"failed to find any PEM":     func(c *Command) { c.TLS = TLSFlags{file, file} },
		"want on or off":             func(c *Command) { c.Audit.Mode = "maybe" },
		"takes neither --audit-db":   func(c *Command) { c.Audit.DB = file },
		"want 16 or more":            func(c *Command) { c.Audit = AuditFlags{Mode: auditOn, KeyFile: file} },
		"not a database":             func(c *Command) { c.Audit = AuditFlags{Mode: auditOn, DB: text} },
		"readers is -1":              func(c *Command) { c.Store.Readers = -1 },
		"address already in use":     func(c *Command) { c.Listen.Addr = taken.Addr().String() },
		"choose another with --addr": func(c *Command) { c.Listen.Addr = "nonsense" },
		"--admin-addr":               func(c *Command) { c.Admin.Addr = taken.Addr().String() },
		"not a directory":            func(c *Command) { c.Store.Kind, c.Store.DB = "sqlite", filepath.Join(file, "below", "x.db") },
		"not a patient database":     func(c *Command) { c.Store.Kind, c.Store.DB = "sqlite", file },
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

func TestStoppedWhileMakingTheDatabaseKeepsNothing(t *testing.T) {
	dir := t.TempDir()
	c := quick()
	c.Store.Kind, c.Store.DB, c.Store.Patients = "sqlite", filepath.Join(dir, "patients.db"), patientapi.MaxPatients
	ctx, cancel := context.WithCancel(t.Context())
	var stdout bytes.Buffer
	err := c.Run(ctx, &stdout, writerFunc(func(p []byte) { cancel() })) // at the first word of progress
	if err == nil || errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "nothing was kept") || stdout.Len() > 0 {
		t.Errorf("%v, wrote %q", err, &stdout)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestPlainOutputIsForPeople(t *testing.T) {
	c := quick()
	c.JSON, c.Pattern.Name = false, patterns.Optimized
	ctx, cancel := context.WithCancel(t.Context())
	var all bytes.Buffer
	err := c.Run(ctx, io.MultiWriter(&all, writerFunc(func([]byte) { cancel() })), io.Discard)
	if err != nil {
		t.Error(err)
	}
	for _, part := range []string{"patient API on http://127.0.0.1:", "pattern optimized", "served 0 ok", "responses were reused"} {
		if !strings.Contains(all.String(), part) {
			t.Errorf("%q is missing from:\n%s", part, &all)
		}
	}
}
