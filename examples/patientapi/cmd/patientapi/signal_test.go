package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/app"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
)

const asCommand = "PATIENTAPI_TEST_AS_COMMAND"

// TestMain is the command itself in processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	config, err := os.MkdirTemp("", "patientapi")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", config) // for development keys
	code := m.Run()
	os.RemoveAll(config)
	os.Exit(code)
}

// launch starts cmd, which is this command, and returns once it is ready, with what it
// writes after that.
func launch(cmd *exec.Cmd, env ...string) (rest *bufio.Reader, ready app.Ready, err error) {
	cmd.Env = append(append(os.Environ(), asCommand+"=1"), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, ready, err
	}
	if err := cmd.Start(); err != nil {
		return nil, ready, err
	}
	rest = bufio.NewReader(out)
	line, err := rest.ReadBytes('\n')
	if err != nil {
		return rest, ready, err
	}
	return rest, ready, json.Unmarshal(line, &ready)
}

// bearer is the header of a clinician.
func bearer(t *testing.T) string {
	t.Helper()
	var token strings.Builder
	if code := run(t.Context(), []string{"token"}, &token, os.Stderr); code != 0 {
		t.Fatal("no token: exit", code)
	}
	return "Bearer " + strings.TrimSpace(token.String())
}

// A process that is told to stop while its clients go on asking answers all that it has
// admitted, says so, and exits with 0. SIGHUP, as the hook of a program sends it that renews
// certificates, once ended the process at once and cut off what was under way.
func TestSIGTERMLosesNothingThatWasAdmittedAndSIGHUPEndsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals")
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--addr=127.0.0.1:0", "--store=simulated", "--json", "--shutdown-timeout=1m",
		"--min-latency=1ms", "--max-latency=20ms", "--error-rate=0", "--slow-start=0s", "--critical-deadline=0s", "--timeout=0s")
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	rest, ready, err := launch(cmd)
	require.NoError(t, err)
	req, err := http.NewRequest(http.MethodGet, "http://"+ready.Addr+"/api/v1/patients/P000042", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", bearer(t))
	var answered, refused atomic.Uint64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() { askOn(t, req, &answered, &refused) })
	}
	await.True(t, "100 requests are answered", func() bool { return answered.Load() >= 100 })
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	for lines := bufio.NewReader(said); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal("it ended: ", err)
		}
		if strings.Contains(line, "SIGHUP") {
			break
		}
	}
	await.True(t, "200 requests are answered", func() bool { return answered.Load() >= 200 })
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	clients.Wait()
	var report app.Report
	require.NoError(t, json.NewDecoder(rest).Decode(&report))
	_, _ = io.Copy(io.Discard, said)
	if err := cmd.Wait(); err != nil {
		t.Error("exit:", err)
	}
	s, q := report.Runner, report.Requests
	if report.Abandoned != "" || s.InFlight != 0 || s.Admitted != s.Completed || s.Admitted != answered.Load() || q.OK != answered.Load() {
		t.Errorf("clients got %d answers and %d refusals; the service says %+v, %+v, %q", answered.Load(), refused.Load(), q, s, report.Abandoned)
	}
}

// askOn asks again and again, until nobody listens any more.
func askOn(t *testing.T, req *http.Request, answered, refused *atomic.Uint64) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	for {
		resp, err := client.Do(req.Clone(t.Context()))
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		switch {
		case err != nil:
			t.Error("half an answer:", err)
		case resp.StatusCode == http.StatusOK:
			answered.Add(1)
		case resp.StatusCode == http.StatusServiceUnavailable:
			refused.Add(1)
		default:
			t.Error(resp.Status)
		}
	}
}
