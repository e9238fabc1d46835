package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/load"
	"github.com/spillway-go/spillway/load/agents"
	"github.com/spillway-go/spillway/loadgen"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "agent" || os.Args[1] == "coordinate") {
		os.Exit(run(os.Args[1:]))
	}
	// The race detector makes every process sleep a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// order is a load of a server of the test's own.
func order(t *testing.T, n int, spec load.Spec) agents.Order {
	t.Helper()
	spec.Interval, spec.Seed, spec.MaxInFlight, spec.Timeout = 200*time.Millisecond, 1, 1000, 20*time.Second
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return agents.Order{Load: text, Interval: spec.Interval, Agents: n, Wait: 50 * time.Second}
}

// target counts the requests by their number.
type target struct {
	*httptest.Server
	all  atomic.Int64
	mu   sync.Mutex
	seen map[string]int
}

func newTarget(t *testing.T) *target {
	s := &target{seen: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.all.Add(1)
		s.mu.Lock()
		s.seen[r.URL.Path]++
		s.mu.Unlock()
	}))
	t.Cleanup(s.Close)
	return s
}

func coordinator(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "coordinate")
	cmd.Stderr = t.Output()
	return cmd
}

func silent(loadgen.Snapshot) {}

func TestAgentsSendOneLoadTogether(t *testing.T) {
	t.Parallel()
	var s *target
	var r *agents.Report
	steps := 0
	await.True(t, "a load that no stall made invalid", func() bool { // an agent that gets no processor for a second and a half counts as lost
		s, steps = newTarget(t), 0
		o := order(t, 3, load.Spec{URL: s.URL + "/{{.id}}/{{n}}", Rate: 300, Requests: 300, Poisson: true, Data: load.Rows{Format: "csv", Text: []byte("id\nP1\nP2\n")}})
		var err error
		if r, err = agents.Delegate(t.Context(), coordinator(t), o, func(loadgen.Snapshot) { steps++ }, func(line string) { t.Log(line) }); err != nil {
			t.Fatal(err)
		}
		return r.Invalid == ""
	})
	all := r.Result.Outcomes[loadgen.OK].Count
	if r.Invalid != "" || len(r.Agents) != 3 || all != r.Result.Offered || all != uint64(s.all.Load()) || all < 200 || steps == 0 {
		t.Errorf("%d ok, the server saw %d, %d steps: %+v", all, s.all.Load(), steps, r)
	}
	for n := range all {
		if path := fmt.Sprintf("/P%d/%d", 1+n%2, n); s.seen[path] != 1 {
			t.Errorf("%s was sent %d times", path, s.seen[path])
		}
	}
	for i, a := range r.Agents {
		if share := (all + 2 - uint64(i)) / 3; a.Result.Offered != share || a.Sent == 0 || a.Received == 0 || a.Uncertainty <= 0 {
			t.Errorf("agent %d: %d requests, want %d; %+v", i, a.Result.Offered, share, a)
		}
	}
}

// during starts a load that has to be ended, calls f with the processes of its agents once
// they send, and returns the report.
func during(t *testing.T, s *target, n int, ctx context.Context, f func(agents []int)) (*agents.Report, error) {
	t.Helper()
	var processes []int
	once := sync.OnceFunc(func() { f(processes) })
	return agents.Delegate(ctx, coordinator(t), order(t, n, load.Spec{URL: s.URL, Rate: 200, Duration: time.Hour}),
		func(shot loadgen.Snapshot) {
			if shot.Sent > 50 {
				once()
			}
		},
		func(line string) {
			t.Log(line)
			if strings.HasPrefix(line, "agents: ") {
				for _, m := range regexp.MustCompile(`/(\d+)`).FindAllStringSubmatch(line, -1) {
					pid, _ := strconv.Atoi(m[1])
					processes = append(processes, pid)
				}
			}
		})
}

func TestAKilledAgentInvalidatesTheRunAndEndsTheOthers(t *testing.T) {
	t.Parallel()
	s := newTarget(t)
	var killed []int
	var r *agents.Report
	await.True(t, "a load of which only the killed agent is lost", func() bool { // one that gets no processor for a second and a half counts as lost
		killed = nil
		var err error
		r, err = during(t, s, 3, t.Context(), func(processes []int) {
			killed = processes
			if len(processes) != 3 {
				t.Errorf("agents %v", processes)
				return
			}
			kill(t, processes[1])
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(killed) == 3 && strings.Contains(r.Invalid, fmt.Sprintf("/%d) was lost", killed[1])) && strings.Count(r.Invalid, "was lost") == 1
	})
	if !r.Result.Partial || r.Result.Offered == 0 || r.Agents[1].Result != nil || r.Agents[0].Result == nil {
		t.Errorf("%+v", r)
	}
	for _, pid := range killed {
		ended(t, pid)
	}
}

func TestCtrlCLeavesAPartialResultAndNoProcess(t *testing.T) {
	t.Parallel()
	s := newTarget(t)
	var processes []int
	var r *agents.Report
	var err error
	await.True(t, "a load that no stall made invalid", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		r, err = during(t, s, 2, ctx, func(all []int) { processes = append(processes, all...); cancel() })
		cancel()
		return err != nil || r.Invalid == ""
	})
	if err != nil || r.Invalid != "" || !r.Result.Partial || r.Result.Offered == 0 || r.Result.Offered != r.Agents[0].Result.Offered+r.Agents[1].Result.Offered {
		t.Errorf("%v, %+v", err, r)
	}
	for _, pid := range processes {
		ended(t, pid)
	}
}

func TestAKilledCoordinatorEndsItsAgents(t *testing.T) {
	t.Parallel()
	s := newTarget(t)
	var processes []int
	var err error
	await.True(t, "a load that no stall ended before the coordinator was killed", func() bool {
		cmd := coordinator(t)
		processes = nil
		kill := sync.OnceFunc(func() { kill(t, cmd.Process.Pid) })
		var r *agents.Report
		r, err = agents.Delegate(t.Context(), cmd, order(t, 2, load.Spec{URL: s.URL, Rate: 200, Duration: time.Hour}), func(loadgen.Snapshot) { kill() }, func(line string) {
			for _, m := range regexp.MustCompile(`/(\d+)`).FindAllStringSubmatch(line, -1) {
				pid, _ := strconv.Atoi(m[1])
				processes = append(processes, pid)
			}
		})
		return err != nil || r.Invalid == ""
	})
	if err == nil || len(processes) != 2 {
		t.Fatalf("%v, agents %v", err, processes)
	}
	for _, pid := range processes {
		ended(t, pid)
	}
}

// kill is kill -9.
func kill(t *testing.T, pid int) {
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Error(err)
	}
}

// ended waits until there is no such process. What is left of a dead one whose parent
// has not asked for it counts as ended.
func ended(t *testing.T, pid int) {
	t.Helper()
	await.True(t, fmt.Sprintf("process %d ends", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, ok := strings.Cut(string(stat), ") ")
		return errors.Is(err, os.ErrNotExist) || ok && state[0] == 'Z'
	})
}

func TestAgentsElsewhereNeedTheToken(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: "secret", NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(await.Limit) {
		t.Fatal("no server")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), self, append([]string{"agent", "--once"}, args...)...)
	}

	refused := agent("--nats", s.ClientURL())
	refused.Env = append(os.Environ(), "SPILLWAY_NATS_TOKEN=guessed")
	if out, err := refused.CombinedOutput(); refused.ProcessState.ExitCode() != 2 || !bytes.Contains(out, []byte("Authorization Violation")) {
		t.Errorf("%v: %s", err, out)
	}
	shown := agent("--nats", strings.Replace(s.ClientURL(), "//", "//secret@", 1))
	if out, err := shown.CombinedOutput(); shown.ProcessState.ExitCode() != 2 || !bytes.Contains(out, []byte("other users of this machine see")) {
		t.Errorf("%v: %s", err, out)
	}

	token := t.TempDir() + "/token"
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := order(t, 1, load.Spec{URL: newTarget(t).URL, Clients: 2, Requests: 100})
	o.Server = agents.Server{URL: s.ClientURL(), TokenFile: token}
	var r *agents.Report
	var ended error
	await.True(t, "a load that no stall made invalid", func() bool {
		good := agent("--name", "elsewhere")
		good.Env = append(os.Environ(), "SPILLWAY_AGENT_NATS="+s.ClientURL(), "SPILLWAY_AGENT_NATS_TOKEN_FILE="+token)
		good.Stderr = t.Output()
		if err := good.Start(); err != nil {
			t.Fatal(err)
		}
		if r, err = agents.Delegate(t.Context(), coordinator(t), o, silent, func(line string) { t.Log(line) }); err != nil {
			t.Fatal(err)
		}
		if r.Invalid != "" { // it may wait for a load yet
			_ = good.Process.Kill()
		}
		ended = good.Wait()
		return r.Invalid == ""
	})
	if r.Agents[0].Name != "elsewhere" || r.Result.Offered != 100 {
		t.Errorf("%+v", r)
	}
	if ended != nil {
		t.Errorf("an agent that was to send one load: %v", ended)
	}
	o.Server.TokenFile = ""
	if _, err := agents.Delegate(t.Context(), coordinator(t), o, silent, func(string) {}); !errors.Is(err, agents.ErrInput) {
		t.Errorf("without the token: %v", err)
	}
}

// It said that it waits for a load, and nothing of a server that is not there.
func TestAnAgentSaysThatItsServerIsNotThere(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.CommandContext(await.Context(t, "the agent speaks and ends"), self, "agent", "--nats", "nats://127.0.0.1:1")
	said, err := agent.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	there := true
	for there && lines.Scan() {
		there = !strings.HasPrefix(lines.Text(), "the NATS server cannot be reached, trying on: dial tcp 127.0.0.1:1")
	}
	if there {
		t.Error("not a word of the server")
	}
	_ = agent.Process.Signal(os.Interrupt)
	if err := agent.Wait(); err != nil {
		t.Errorf("told to end: %v", err)
	}
}

func TestATargetThatIsNotThereIsBadInput(t *testing.T) {
	t.Parallel()
	s := newTarget(t)
	s.Close()
	_, err := agents.Delegate(t.Context(), coordinator(t), order(t, 2, load.Spec{URL: s.URL, Clients: 2, Requests: 100}), silent, func(string) {})
	if !errors.Is(err, agents.ErrInput) || !strings.Contains(err.Error(), "is the server running?") {
		t.Error(err)
	}
}
