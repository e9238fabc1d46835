package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/app"
)

const asCommand = "PATIENTAPI_TEST_AS_COMMAND"

// TestMain is the command itself in processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// A process that is told to stop while its clients go on asking answers all that it has
// admitted, says so, and exits with 0.
func TestSIGTERMLosesNothingThatWasAdmitted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--addr=127.0.0.1:0", "--store=simulated", "--json", "--shutdown-timeout=1m",
		"--min-latency=1ms", "--max-latency=20ms", "--error-rate=0", "--slow-start=0s", "--critical-deadline=0s", "--timeout=0s")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(bufio.NewReader(out))
	var ready app.Ready
	if err := lines.Decode(&ready); err != nil {
		t.Fatal(err)
	}

	var answered, refused atomic.Uint64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: time.Minute}
			for {
				resp, err := client.Get("http://" + ready.Addr + "/api/v1/patients/P000042")
				if err != nil {
					return // it no longer listens
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
		})
	}
	for answered.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	var report app.Report
	if err := lines.Decode(&report); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error("exit:", err)
	}
	s, q := report.Runner, report.Requests
	if report.Abandoned != "" || s.InFlight != 0 || s.Admitted != s.Completed || s.Admitted != answered.Load() || q.OK != answered.Load() {
		t.Errorf("clients got %d answers and %d refusals; the service says %+v, %+v, %q", answered.Load(), refused.Load(), q, s, report.Abandoned)
	}
}
