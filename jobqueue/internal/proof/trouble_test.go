package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

func open(t *testing.T, cfg jetstream.Config) jobqueue.Queue {
	t.Helper()
	cfg.Wait = cmp.Or(cfg.Wait, await.Limit) // on a busy disk an answer may take longer than the default
	var q jobqueue.Queue
	await.True(t, "the queue is open", func() bool { // Config.Wait may be short, and the disk slow
		var err error
		if q, err = jetstream.Open(t.Context(), cfg); err != nil && !errors.Is(err, jobqueue.ErrUnavailable) {
			t.Fatal(err)
		}
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// worker does jobs until the end of the test and counts them by key.
func worker(t *testing.T, q jobqueue.Queue) (done func() map[string]int) {
	var mu sync.Mutex
	keys := map[string]int{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			keys[d.Key]++
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(keys)
	}
}

// engine is a server that can go away and come back.
type engine struct {
	*testing.T
	cfg    embedded.Config
	server *embedded.Server
}

func newEngine(t *testing.T) *engine {
	e := &engine{T: t, cfg: embedded.Config{Dir: t.TempDir(), Listen: freeAddr(t)}}
	t.Cleanup(e.goes)
	return e
}

func (e *engine) url() string { return "nats://" + e.cfg.Listen }

func (e *engine) comes() {
	e.Helper()
	await.True(e.T, "the server starts", func() (ok bool) { // another process may briefly have the port
		var err error
		e.server, err = embedded.Start(e.cfg)
		return err == nil
	})
}

func (e *engine) goes() {
	if e.server != nil {
		if err := e.server.Close(context.Background()); err != nil {
			e.Error(err)
		}
		e.server = nil
	}
}

func TestAnEngineThatIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	cfg := jetstream.Config{URL: e.url(), Wait: 300 * time.Millisecond}
	if _, err := jetstream.Open(t.Context(), cfg); !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("Open: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg.Wait = time.Hour
	if _, err := jetstream.Open(ctx, cfg); err == nil {
		t.Error("Open with a context that has ended")
	}
	opened := make(chan error, 1)
	go func() {
		q, err := jetstream.Open(t.Context(), cfg)
		if err == nil {
			err = q.Close()
		}
		opened <- err
	}()
	e.comes()
	if err := await.Receive(t, "Open returns", opened); err != nil {
		t.Errorf("Open while the engine comes: %v", err)
	}
}

func TestAnEngineThatGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.comes()
	q := open(t, jetstream.Config{URL: e.url(), Wait: time.Second, AckWait: await.Limit / 3}) // a job sent to no worker comes again within the limit
	done := worker(t, q)
	put := func(key string) error {
		_, err := q.Enqueue(t.Context(), jobqueue.Job{Key: key})
		return err
	}
	await.True(t, "the first is stored", func() bool { return put("before") == nil }) // Wait is short, and the disk may be slow
	await.True(t, "the first is done, and the engine knows", func() bool {
		s, err := q.Stats(t.Context())
		return err == nil && s.Done == 1
	})

	e.goes()
	if err := put("away"); !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("Enqueue while the engine is away: %v", err)
	}
	if _, err := q.Stats(t.Context()); !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("Stats while the engine is away: %v", err)
	}
	ctx, pass := await.Deadline(t.Context())
	pass()
	if _, err := q.Enqueue(ctx, jobqueue.Job{Key: "given up"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Enqueue with a deadline that has passed: %v", err)
	}

	e.comes()
	await.True(t, "Enqueue works again", func() bool { return put("after") == nil })
	await.True(t, "Work goes on", func() bool { return done()["after"] >= 1 })
	if n := done()["before"]; n != 1 {
		t.Errorf("the first job was done %d times", n)
	}
}

// TestPoisonedMessages puts messages that are not jobs into the stream of jobs.
func TestPoisonedMessages(t *testing.T) {
	t.Parallel()
	server := start(t, embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	q := open(t, jetstream.Config{Server: server})
	nc, err := nats.Connect(server.URL(), nats.Timeout(await.Limit))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	poison := []*nats.Msg{
		{Data: []byte("\x00\xff not a job")},
		{Header: nats.Header{"Spillway-Job": {"{"}}},
		{Header: nats.Header{"Spillway-Job": {`{"k":"x","p":"urgent"}`}}},
		{Header: nats.Header{"Spillway-Job": {`{"k":"x","d":-1}`}}},
		{Header: nats.Header{"Spillway-Job": {`{"k":""}`, `{"k":"two"}`}}},
		{Data: make([]byte, 1<<20)}, // the largest message that the server accepts
	}
	for _, m := range poison {
		m.Subject = "spillway.jobs.jobs.ready.normal"
		if reply, err := nc.RequestMsg(m, time.Minute); err != nil || strings.Contains(string(reply.Data), "error") {
			t.Fatalf("%v, %v", reply, err)
		}
	}
	if _, err := q.Enqueue(t.Context(), jobqueue.Job{Key: "good"}); err != nil {
		t.Fatal(err)
	}
	done := worker(t, q)
	await.True(t, "they are dead letters", func() bool {
		s, err := q.Stats(t.Context())
		return err == nil && s.Dead == len(poison) && s.Depth == jobqueue.Depth{} && done()["good"] == 1
	})
	dead, err := q.Dead(t.Context(), 99)
	if err != nil || len(dead) != len(poison) {
		t.Fatalf("%v, %v", dead, err)
	}
	for _, d := range dead {
		if !strings.Contains(d.Reason, "not a job") || d.Attempts != 1 {
			t.Errorf("dead letter %d: %q after %d attempts", d.ID, d.Reason, d.Attempts)
		}
	}
	if n := len(done()); n != 1 {
		t.Errorf("handlers were given %v", done())
	}
}

// TestAJobThatEndsItsProcessTakesNoOtherAlong: each time the job ended its process, the other jobs
// of the process once lost an attempt too. They became dead letters together with the job, some
// without a run.
func TestAJobThatEndsItsProcessTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	const attempts, others = 3, 12
	f := &fleet{T: t, dir: t.TempDir(), site: site{Store: t.TempDir(), Addrs: []string{freeAddr(t)}, InFlight: 8, Attempts: attempts, AckWait: 3 * time.Second, Wait: 5 * time.Second}}
	f.await(f.start(task{Role: "server"}))
	q, err := f.site.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	for i := range 1 + others {
		key := fmt.Sprint(fine, i)
		if i == 0 {
			key = fatal
		}
		await.True(f, "a job is stored", func() bool { // an answer may take longer than site.open waits for it
			_, err := q.Enqueue(t.Context(), jobqueue.Job{Key: key, Payload: []byte(key)})
			return err == nil
		})
	}
	for {
		w := f.start(task{Role: "worker"})
		f.await(w)
		empty := false
		await.True(f, "the worker dies, or all is done", func() bool {
			select {
			case <-w.ended:
				return true
			default:
			}
			s, err := q.Stats(t.Context())
			empty = err == nil && s.Depth == jobqueue.Depth{}
			return empty
		})
		if empty {
			f.stop(w)
			break
		}
	}
	var dead []jobqueue.DeadJob
	await.True(f, "the dead letters are told", func() bool {
		dead, err = q.Dead(t.Context(), 99)
		return err == nil
	})
	if len(dead) != 1 || dead[0].Job.Key != fatal || dead[0].Attempts != attempts {
		t.Errorf("dead letters %+v", dead)
	}
	lines, err := readLedgers(f.dir, "done-")
	if err != nil {
		t.Fatal(err)
	}
	starts := 0
	for _, line := range lines {
		if line == "started "+fatal {
			starts++
		}
	}
	if starts == 0 || starts > attempts { // fewer if a worker held the job for AckWait without a run
		t.Errorf("it was started %d times", starts)
	}
}

// TestAHandlerThatKillsItsWorkers: a job that no worker survives becomes a dead letter.
func TestAHandlerThatKillsItsWorkers(t *testing.T) {
	t.Parallel()
	server := start(t, embedded.Config{Dir: t.TempDir()})
	cfg := jetstream.Config{Server: server, AckWait: time.Second, Policy: jobqueue.Policy{MaxAttempts: 3}}
	q := open(t, cfg)
	if _, err := q.Enqueue(t.Context(), jobqueue.Job{Key: "fatal"}); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Work(ctx, func(ctx context.Context, d *jobqueue.Delivery) error {
			runs.Add(1)
			<-ctx.Done() // never answers in time
			return errors.New("too late")
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	var dead []jobqueue.DeadJob
	await.True(t, "it is a dead letter", func() (is bool) {
		var err error
		dead, err = q.Dead(t.Context(), 9)
		return err == nil && len(dead) > 0
	})
	// If the machine stalls for AckWait, an attempt may end without a run.
	if n := runs.Load(); len(dead) != 1 || dead[0].Job.Key != "fatal" || dead[0].Attempts != 3 || n == 0 || n > 3 {
		t.Errorf("it ran %d times, and the dead letters are %+v", n, dead)
	}
}
