package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/load/agents"
	"github.com/spillway-go/spillway/loadgen"
)

func TestAgentsReportAsOneProcessDoes(t *testing.T) {
	t.Parallel()
	if _, err := contestant.Build(t.Context(), contestant.Spec{Program: agentProgram}, t.Output()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	lines := filepath.Join(t.TempDir(), "lines.csv")
	args := []string{"load", "--agents", "2", "--rate", "200", "--requests", "100", "--interval", "100ms", "--csv", lines, "-e", "ok>99%", "-e", "p99<30s", server.URL}
	valid := func(args ...string) (code int, stdout, stderr string) {
		await.True(t, "a load of which no agent is lost", func() bool { // one that gets no processor for a second and a half is
			code, stdout, stderr = command(t, args...)
			return !strings.Contains(stdout+stderr, "was lost") && !strings.Contains(stdout+stderr, " jumped by ")
		})
		return code, stdout, stderr
	}
	code, stdout, stderr := valid(append(args, "--json")...)
	var got loadSummary
	if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if got.Offered != 100 || got.Outcomes[loadgen.OK].Count != 100 || len(got.Agents) != 2 || got.Agents[0].Offered != 50 || got.Agents[0].Generator.Micros <= 0 ||
		got.BytesSent == 0 || got.BytesSent != got.Agents[0].BytesSent+got.Agents[1].BytesSent || got.Agents[1].Uncertainty <= 0 || len(got.Expectations) != 2 || got.Invalid != "" {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(stderr, "agents: 1 ") {
		t.Errorf("nobody says who the agents are:\n%s", stderr)
	}
	code, _, stderr = valid(append(args, "-e", "ok<1%")...)
	if code != 1 || !strings.Contains(stderr, "1 of 3 expectations not kept") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	server.Close()
	if code, stdout, stderr = command(t, args...); code != 2 || stdout != "" || !strings.Contains(stderr, "is the server running?") {
		t.Errorf("without a server: exit code %d, %s", code, stderr)
	}
}

// lossy is a report of two agents, one of them lost.
func lossy() measured {
	r := &loadgen.Result{Offered: 2, Elapsed: time.Second, Partial: true}
	r.Outcomes[loadgen.OK].Count = 2
	r.Outcomes[loadgen.OK].Latency.RecordN(1e6, 2)
	r.Lag.RecordN(1000, 2)
	report := &agents.Report{
		Result: r, Invalid: "agent 2 (b/2) was lost 3s after the start", Warnings: []string{"the clock of agent 1"},
		Agents: []agents.Agent{
			{Name: "a/1", Result: r, CPU: 20 * time.Microsecond, Sent: 100, Received: 3 << 20, Uncertainty: 40 * time.Microsecond, ClockMoved: 6 * time.Millisecond, LastSent: 2},
			{Name: "b/2", Lost: "it has been silent", LastSent: 17},
		},
	}
	return measured{result: r, report: report, sent: 100, received: 3 << 20}
}

func TestALostAgentIsInEveryFormOfTheResult(t *testing.T) {
	s := summarize("http://x/", lossy(), nil)
	var text, asJSON, exposed strings.Builder
	for format, w := range map[string]*strings.Builder{"text": &text, "json": &asJSON, "prometheus": &exposed} {
		if err := s.write(w, format); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"\nINVALID: agent 2 (b/2) was lost 3s after the start\n", "\nnote: the clock of agent 1\n", "2 b/2                           17  lost: it has been silent\n",
		"1 a/1                            2         2         0         0         0     0.1 KiB    3.0 MiB      10.0   0.00 ms\n", "known to ±0.04 ms\n", "bytes: 0.1 KiB sent, 3.0 MiB received\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if !strings.Contains(asJSON.String(), `"invalid": "agent 2`) || !strings.Contains(asJSON.String(), `"lost": "it has`) || !strings.Contains(asJSON.String(), `"clock_moved_ms": 6,`) || !strings.Contains(exposed.String(), "\nspillway_load_invalid 1\n") {
		t.Errorf("%s\n%s", asJSON.String(), exposed.String())
	}
}
