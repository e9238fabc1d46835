package app

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
)

// instance is a service as its clients see it.
type instance struct {
	*running

	asked       atomic.Int64 // requests under way
	ok, refused atomic.Uint64
	draining    atomic.Bool   // it may have begun to drain
	early       atomic.Uint64 // times that it said so before
}

// connection is a client with one connection at most to each instance. One that had
// several would open some that it never uses, and http.Server.Shutdown waits five
// seconds for those to be used.
func connection(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// status returns that of the answer, and why it is a refusal; 0 means that there was no
// whole answer.
func status(ctx context.Context, client *http.Client, addr, path string) (code int, reason string) {
	resp, err := client.Do(asked(ctx, "http://"+addr+path))
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, ""
	}
	return resp.StatusCode, resp.Header.Get("Spillway-Reason")
}

// ask asks once, and reports whether the instance has answered.
func (i *instance) ask(ctx context.Context, client *http.Client) bool {
	i.asked.Add(1)
	defer i.asked.Add(-1)
	code, reason := status(ctx, client, i.addr, "/api/v1/patients/P000042")
	switch {
	case code == http.StatusOK:
		i.ok.Add(1)
	case code == http.StatusServiceUnavailable:
		i.refused.Add(1)
		if reason == "draining" && !i.draining.Load() {
			i.early.Add(1)
		}
	}
	return code == http.StatusOK
}

// ended compares what an instance says that has stopped with what its clients got.
func (i *instance) ended(t *testing.T, report Report, err error) {
	t.Helper()
	await.True(t, "what is answered was read", func() bool { return i.asked.Load() == 0 })
	s, q := report.Runner, report.Requests
	if err != nil || report.Abandoned != "" || s.InFlight != 0 || s.Queued != 0 || s.Admitted != s.Completed || s.Cancelled != 0 {
		t.Errorf("%v, %q, %+v", err, report.Abandoned, s)
	}
	if q.OK != i.ok.Load() || s.Admitted != q.OK || q.Error+q.Timeout+q.Abandoned+q.BadInput != 0 {
		t.Errorf("admitted %d, answered %+v; its clients have %d answers", s.Admitted, q, i.ok.Load())
	}
	if n := i.early.Load(); n != 0 {
		t.Errorf("%d requests were refused before it was not ready", n)
	}
	t.Logf("%d requests answered, %d refused", i.ok.Load(), i.refused.Load())
}

// A service that is replaced under load loses nothing that it has admitted: what an
// instance says it answered is what its clients have got. It is not ready before it
// refuses anything. Every other time it drains at once, while its clients do not know.
func TestRollingRestartsLoseNothing(t *testing.T) {
	t.Parallel()
	restarted(t, 4)
}

// restarted replaces a service that often, and fails the test if a request is lost.
func restarted(t *testing.T, restarts int) {
	t.Helper()
	const clients, each = 8, 25 // requests that an instance answers, at least
	var current atomic.Pointer[instance]
	var next *instance
	begin := func(noticed bool) *instance {
		c := quick()
		c.Faults.MinLatency, c.Faults.MaxLatency, c.Pattern.SlowStart = time.Millisecond, 5*time.Millisecond, 100*time.Millisecond
		c.Admin.Addr, c.Shutdown.Timeout = "127.0.0.1:0", time.Minute
		i := new(instance)
		i.running = startNoticed(t, c, func(d time.Duration) {
			if code, _ := status(t.Context(), http.DefaultClient, i.addr, "/readyz"); code != http.StatusServiceUnavailable || d != c.Shutdown.DrainDelay {
				t.Errorf("about to drain in %v, /readyz says %d", d, code)
			}
			if noticed {
				current.Store(next)
			}
			i.draining.Store(true)
		})
		if n := i.metric(t, "spillway_limit"); n != 1 {
			t.Errorf("a new instance starts with a limit of %d, want 1", n)
		}
		return i
	}
	current.Store(begin(true))
	var done atomic.Bool
	var lost atomic.Uint64
	var load sync.WaitGroup
	for range clients {
		client := connection(t)
		load.Go(func() {
			for !done.Load() { // a request is tried until an instance answers
				ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
				for !current.Load().ask(ctx, client) {
					if ctx.Err() != nil {
						lost.Add(1)
						break
					}
					runtime.Gosched()
				}
				cancel()
			}
		})
	}
	for n := range restarts {
		old := current.Load()
		await.True(t, "the instance has answered enough", func() bool { return old.ok.Load() >= each })
		next = begin(n%2 == 0)
		report, err := old.report(t)
		current.Store(next)
		old.ended(t, report, err)
	}
	done.Store(true)
	load.Wait()
	report, err := next.report(t)
	next.ended(t, report, err)
	if n := lost.Load(); n != 0 {
		t.Errorf("%d requests were never answered", n)
	}
}
