package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/load/usage"
)

// write writes files into a new folder, and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAMixWithDataReportsItsClasses(t *testing.T) {
	dir := write(t, map[string]string{
		"data.csv": "id,name\nP1,Ada\nP2,Bob\n",
		"mix.json": `[
			{"priority": "critical", "path": "/patients/{{.id}}"},
			{"weight": 3, "class": "batch", "priority": "low", "method": "post", "headers": {"X-Kind": "b"}, "body": "{{.name}}"}
		]`,
	})
	var mu sync.Mutex
	seen := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 10)
		n, _ := r.Body.Read(body)
		mu.Lock()
		seen[fmt.Sprintln(r.Method, r.URL.Path, r.Header.Get("Spillway-Priority"), r.Header.Get("X-Kind"), r.Header.Get("X-All"), string(body[:n]))]++
		mu.Unlock()
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	args := []string{"load", "--clients", "4", "--requests", "400", "-H", "X-All: a", "--data", filepath.Join(dir, "data.csv"), "--mix", filepath.Join(dir, "mix.json"), server.URL + "/base"}
	code, stdout, stderr := command(t, append(args, "--json", "-e", "critical:ok>=100%", "-e", "batch:rejected>=100%", "-e", "batch:rejected.p99<30s")...)
	var got loadSummary
	if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v, %s", code, err, stderr)
	}
	if len(got.Classes) != 2 || got.Classes[0].Class != "critical" || got.Classes[1].Class != "batch" {
		t.Fatalf("classes: %+v", got.Classes)
	}
	critical, batch := got.Classes[0].Outcomes[loadgen.OK], got.Classes[1].Outcomes[loadgen.Rejected]
	if critical.Count+batch.Count != 400 || critical.Count < 60 || critical.Count > 140 || critical.Latency == nil || got.Classes[1].Outcomes[loadgen.OK].Latency != nil {
		t.Errorf("critical %+v, batch %+v", critical, batch)
	}
	for _, want := range []string{"GET /patients/P1 critical  a \n", "GET /patients/P2 critical  a \n", "POST /base low b a Ada\n", "POST /base low b a Bob\n"} {
		if seen[want] == 0 || len(seen) != 4 {
			t.Errorf("no request %q among %v", want, seen)
		}
	}
	if _, stdout, _ = command(t, args...); !strings.Contains(stdout, "\ncritical: goodput ") || !strings.Contains(stdout, "\nbatch: goodput 0.0/s\nrejected ") {
		t.Errorf("as text:\n%s", stdout)
	}
}

func TestAProfileAndATraceSayHowManyRequestsThereAre(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	trace := filepath.Join(write(t, map[string]string{"trace.csv": "at,status\n10.0,200\n10.01,503\n10.02,200\n"}), "trace.csv")
	for _, c := range []struct {
		args []string
		want uint64
	}{
		{[]string{"--profile", "100:100ms,0:20ms,0-200:100ms"}, 20},
		{[]string{"--profile", "100:20ms,0:30ms", "--duration", "100ms"}, 4},
		{[]string{"--trace", trace}, 3},
	} {
		code, stdout, stderr := command(t, append([]string{"load", "--json", server.URL}, c.args...)...)
		var got loadSummary
		if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil || got.Offered != c.want {
			t.Errorf("%v: exit code %d, %d requests, want %d: %v %s", c.args, code, got.Offered, c.want, err, stderr)
		}
	}
}

func TestEachIntervalIsALineOfCSV(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "out.csv")
	code, stdout, stderr := command(t, "load", "--rate", "200", "--requests", "50", "--interval", "50ms", "--csv", path, "--format", "prometheus", "-e", "p99<30s", server.URL)
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{"spillway_load_requests_total{outcome=\"ok\"} 50\n", "spillway_load_latency_seconds{outcome=\"ok\",quantile=\"0.999\"} ", "spillway_load_send_lag_seconds_count 50\n",
		"spillway_load_expectation_kept{expect=\"p99<30s\"} 1\n", "# TYPE spillway_load_goodput gauge\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, `outcome="error",quantile`) {
		t.Errorf("latencies that there are not in\n%s", stdout)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	names, ok := strings.Split(lines[0], ","), 0
	for _, line := range lines[1:] {
		fields := strings.Split(line, ",")
		if len(fields) != len(names) {
			t.Fatalf("%q under %q", line, lines[0])
		}
		n, err := strconv.Atoi(fields[3])
		if err != nil {
			t.Error(err)
		}
		ok += n
	}
	if ok != 50 || len(lines) < 2 {
		t.Errorf("%d ok in\n%s", ok, text)
	}
}

func TestBadInputRemovesNoFileThatWasThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	path := filepath.Join(write(t, map[string]string{"device": ""}), "device")
	code, _, stderr := command(t, "load", "--rate", "1e12", "--csv", path, server.URL)
	if _, err := os.Stat(path); code != 2 || err != nil {
		t.Errorf("exit code %d, %v, %s", code, err, stderr)
	}
}

func TestALoadSaysWhatItCostItsGenerator(t *testing.T) {
	if usage.CPU() == 0 {
		t.Skip("this system does not tell the processor time of a process")
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	args := []string{"load", "--clients", "2", "--requests", "100", server.URL}
	if _, stdout, _ := command(t, args...); !strings.Contains(stdout, "\ngenerator: ") || !strings.Contains(stdout, " µs of processor time a request") {
		t.Errorf("as text:\n%s", stdout)
	}
	_, stdout, _ := command(t, append(args, "--json")...)
	var got loadSummary
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Generator.Micros <= 0 {
		t.Errorf("%v in\n%s", err, stdout)
	}
	if _, stdout, _ = command(t, append(args, "--format", "prometheus")...); !strings.Contains(stdout, "\nspillway_load_generator_cpu_seconds_per_request ") {
		t.Errorf("for Prometheus:\n%s", stdout)
	}
}
