package app

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
)

// balancer sends requests to the instances that are ready, as a load balancer does.
type balancer struct {
	mu        sync.Mutex
	instances []*instance
	next      atomic.Uint64
	ok        atomic.Uint64 // requests that were answered in the end
	lost      atomic.Uint64 // that no instance answered, however often they were tried
}

// instance is a service as its clients see it.
type instance struct {
	*running

	ready, noticed chan struct{} // closed when /readyz was seen to change
	asked          atomic.Int64  // requests under way, as its clients see it
	ok, refused    atomic.Uint64
	draining       atomic.Bool   // it may have begun to drain
	early          atomic.Uint64 // times that it said so before
	waits          bool          // before it drains, until its clients have noticed
	last           int           // what /readyz said when it was no longer ready
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

// follow keeps i among the instances for as long as its readiness says so.
func (b *balancer) follow(ctx context.Context, client *http.Client, i *instance) {
	ready := func() int {
		code, _ := status(ctx, client, i.addr, "/readyz")
		return code
	}
	for ready() != http.StatusOK {
		if ctx.Err() != nil {
			return
		}
	}
	b.mu.Lock()
	b.instances = append(b.instances, i)
	b.mu.Unlock()
	close(i.ready)
	for i.last = ready(); i.last == http.StatusOK; i.last = ready() {
		runtime.Gosched()
	}
	b.mu.Lock()
	b.instances = slices.DeleteFunc(b.instances, func(o *instance) bool { return o == i })
	b.mu.Unlock()
	close(i.noticed)
}

func (b *balancer) pick() *instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.instances) == 0 {
		return nil
	}
	i := b.instances[b.next.Add(1)%uint64(len(b.instances))]
	i.asked.Add(1)
	return i
}

// request asks until an instance answers, as clients do that retry what was refused.
func (b *balancer) request(ctx context.Context, client *http.Client) {
	ctx, cancel := context.WithTimeout(ctx, await.Limit)
	defer cancel()
	for ctx.Err() == nil {
		i := b.pick()
		if i == nil {
			runtime.Gosched()
			continue
		}
		code, reason := status(ctx, client, i.addr, "/api/v1/patients/P000042")
		switch code {
		case http.StatusOK:
			i.ok.Add(1)
		case http.StatusServiceUnavailable:
			i.refused.Add(1)
			if reason == "draining" && !i.draining.Load() {
				i.early.Add(1)
			}
		}
		i.asked.Add(-1)
		if code == http.StatusOK {
			b.ok.Add(1)
			return
		}
		runtime.Gosched()
	}
	b.lost.Add(1)
}

var enforcedLimit = regexp.MustCompile(`(?m)^spillway_limit\{.*\} ([0-9]+)$`)

func (i *instance) limit(t *testing.T) int {
	t.Helper()
	_, metrics := i.operate(t, "/metrics")
	found := enforcedLimit.FindStringSubmatch(metrics)
	if found == nil {
		t.Fatal("no limit in the metrics")
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// end stops it, compares what it says with what its clients got, and returns how many
// requests it refused.
func (i *instance) end(t *testing.T) (refused uint64) {
	t.Helper()
	report, err := i.report(t)
	<-i.noticed
	await.True(t, "what is answered was read", func() bool { return i.asked.Load() == 0 })
	s, q := report.Runner, report.Requests
	if err != nil || report.Abandoned != "" || s.InFlight != 0 || s.Queued != 0 || s.Admitted != s.Completed || s.Cancelled != 0 {
		t.Errorf("%v, %q, %+v", err, report.Abandoned, s)
	}
	if q.OK != i.ok.Load() || s.Admitted != q.OK || q.Error+q.Timeout+q.Abandoned+q.BadInput != 0 {
		t.Errorf("admitted %d, answered %+v; its clients have %d answers", s.Admitted, q, i.ok.Load())
	}
	if n := i.early.Load(); n != 0 || i.waits && i.last != http.StatusServiceUnavailable {
		t.Errorf("%d requests were refused before it was not ready; /readyz said %d", n, i.last)
	}
	return i.refused.Load()
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
	b, ctx := &balancer{}, t.Context()

	begin := func(waits bool) *instance {
		c := quick()
		c.Faults.MinLatency, c.Faults.MaxLatency, c.Pattern.SlowStart = time.Millisecond, 5*time.Millisecond, 100*time.Millisecond
		c.Admin.Addr, c.Shutdown.Timeout = "127.0.0.1:0", time.Minute
		i := &instance{waits: waits, ready: make(chan struct{}), noticed: make(chan struct{})}
		i.running = startNoticed(t, c, func(time.Duration) {
			if waits {
				<-i.noticed
			}
			i.draining.Store(true)
		})
		if n := i.limit(t); n != 1 {
			t.Errorf("a new instance starts with a limit of %d, want 1", n)
		}
		go b.follow(ctx, connection(t), i)
		<-i.ready
		return i
	}
	current := begin(true)
	done := make(chan struct{})
	var load sync.WaitGroup
	for range clients {
		client := connection(t)
		load.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					b.request(ctx, client)
				}
			}
		})
	}
	var refused uint64
	for n := range restarts {
		next := begin(n%2 == 0)
		await.True(t, "both instances have answered enough", func() bool { return next.ok.Load() >= each && current.ok.Load() >= each })
		refused += current.end(t)
		current = next
	}
	close(done)
	load.Wait()
	refused += current.end(t)
	if b.lost.Load() != 0 || b.ok.Load() < uint64(restarts*each) {
		t.Errorf("%d requests were answered, %d never", b.ok.Load(), b.lost.Load())
	}
	t.Logf("%d requests answered, %d refused by an instance that stopped", b.ok.Load(), refused)
}

// A new process takes work on step by step, and ends with all that it can do.
func TestANewProcessRamps(t *testing.T) {
	c := quick()
	c.Admin.Addr, c.Pattern.SlowStart = "127.0.0.1:0", time.Hour
	slow := &instance{running: start(t, c)}
	c.Pattern.SlowStart = time.Millisecond
	quick := &instance{running: start(t, c)}
	for _, i := range []*instance{slow, quick} {
		if status, _ := i.get(t, "/api/v1/patients/P000042"); status != 200 {
			t.Errorf("%d", status)
		}
	}
	if n := slow.limit(t); n != 1 {
		t.Errorf("within an hour's slow start the limit is %d, want 1", n)
	}
	for quick.limit(t) < 2 { // the first answer says that it is over
		quick.get(t, "/api/v1/patients/P000042")
	}
}
