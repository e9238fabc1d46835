package jetstream

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
)

// A server that takes small batches refused the batch that concurrent calls of Enqueue shared, and
// each of the jobs in it for good.
func TestAServersBoundOnBatchesRefusesNoJob(t *testing.T) {
	s := node(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		JetStreamLimits: server.JSLimitOpts{MaxBatchSize: fewAlone + 2},
	})
	q := open(t, Config{URL: s.ClientURL()})
	const jobs = 600
	var all sync.WaitGroup
	for range jobs {
		all.Go(func() {
			if _, err := q.Enqueue(within(t), jobqueue.Job{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	await.True(t, "all are ready", func() bool { return stats(t, q).Ready == jobs }) // the server counts them a moment later
}

// A dead letter that was too large for the server was tried for ever: its job ran again and again.
func TestADeadLetterThatDoesNotFitIsCut(t *testing.T) {
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, MaxPayload: 64 << 10}
	s := node(t, o)
	q := open(t, Config{URL: s.ClientURL(), AckWait: time.Second})
	enqueue(t, q, jobqueue.Job{Key: "large", Payload: make([]byte, 50<<10), Header: map[string]string{"h": "v"}})
	again := o.Clone()
	again.Port, again.MaxPayload = s.Addr().(*net.TCPAddr).Port, 4<<10
	s.Shutdown()
	s.WaitForShutdown()
	node(t, again)
	await.True(t, "the new limit is known", func() bool { return q.nc.IsConnected() && q.nc.MaxPayload() == 4<<10 })
	if _, err := q.Enqueue(within(t), jobqueue.Job{Payload: make([]byte, 3<<10)}); !errors.Is(err, jobqueue.ErrTooLarge) {
		t.Errorf("no room for a reason: %v", err)
	}
	enqueue(t, q, jobqueue.Job{Key: "small", Payload: make([]byte, 1<<10), Header: map[string]string{"h": "v"}})
	reason := strings.Repeat("why ", 1000)
	stop := work(t, q, func(context.Context, *jobqueue.Delivery) error { return jobqueue.Dead(reason) })
	await.True(t, "both are dead", func() bool { s := stats(t, q); return s.Dead == 2 && s.Depth == jobqueue.Depth{} })
	_ = stop()
	letters, err := q.Dead(within(t), 2)
	check(t, err)
	for _, d := range letters {
		if !strings.HasPrefix(d.Reason, "why why") {
			t.Errorf("the reason of %s is %q", d.Job.Key, d.Reason)
		}
		err := q.Replay(within(t), d.ID)
		if d.Job.Key == "large" {
			if !strings.Contains(d.Reason, "are missing") || len(d.Job.Payload) < 2<<10 || err == nil {
				t.Errorf("%d bytes are left, reason %q, replayed: %v", len(d.Job.Payload), d.Reason, err)
			}
		} else if len(d.Job.Payload) != 1<<10 || d.Job.Header["h"] != "v" || err != nil {
			t.Errorf("%+v, replayed: %v", d, err)
		}
	}
}

// In JSON some bytes of a reason become six: with large headers the letter had more headers than a
// server takes, and its job ran again though it was dead.
func TestADeadLetterWithLargeHeadersIsCut(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{Key: strings.Repeat("ü", engine.LongestKey/2), Payload: []byte("payload"), Header: map[string]string{"big": strings.Repeat("a", 47<<10)}})
	var runs atomic.Int32
	work(t, q, func(context.Context, *jobqueue.Delivery) error {
		runs.Add(1)
		return jobqueue.Dead(strings.Repeat("<", 4<<10))
	})
	await.True(t, "a dead letter", func() bool { return stats(t, q).Dead == 1 })
	letters, err := q.Dead(within(t), 1)
	if err != nil || len(letters) != 1 || runs.Load() != 1 {
		t.Fatalf("%d runs, %d letters, %v", runs.Load(), len(letters), err)
	}
	if l := letters[0]; len(l.Job.Header["big"]) != 47<<10 || string(l.Job.Payload) != "payload" || len(l.Reason) < shortReason {
		t.Errorf("headers %d, payload %q, reason %d", len(l.Job.Header["big"]), l.Job.Payload, len(l.Reason))
	}
}

// A server whose limit is lowered while clients are connected does not tell them, and ends the
// connection of one that exceeds it. The client library does not open it again. Work ran no job from
// then on, and did not end; the queue seemed to be ready.
func TestAConnectionThatTheServerEndsForGoodEndsWork(t *testing.T) {
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, MaxPayload: 64 << 10}
	s := node(t, o)
	log := &logtest.Log{}
	q := open(t, Config{URL: s.ClientURL(), Logger: log.Logger()})
	running, cause, worked := make(chan bool), make(chan error, 1), make(chan error, 1)
	handle := func(ctx context.Context, _ *jobqueue.Delivery) error {
		close(running)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	}
	go func() { worked <- q.Work(t.Context(), handle) }()
	enqueue(t, q, jobqueue.Job{})
	await.Receive(t, "a job runs", running)
	if !q.Open() {
		t.Error("not open")
	}
	lower := o.Clone()
	lower.MaxPayload = 4 << 10
	check(t, s.ReloadOptions(lower))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() { _, _ = q.Enqueue(ctx, jobqueue.Job{Payload: make([]byte, 20<<10)}) }()
	await.True(t, "it is in the log, and the queue has ended", func() bool {
		return strings.Contains(strings.Join(log.Lines(), ""), "for good") && !q.Open()
	})
	_, asked := q.Stats(within(t))
	_, stored := q.Enqueue(within(t), jobqueue.Job{})
	for what, err := range map[string]error{
		"Stats": asked, "Enqueue": stored, "Work": await.Receive(t, "Work ends", worked), "a later Work": q.Work(t.Context(), handle),
	} {
		if !errors.Is(err, jobqueue.ErrUnavailable) || !strings.Contains(err.Error(), "open the queue again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := await.Receive(t, "the handler ends", cause); !errors.Is(err, jobqueue.ErrLost) {
		t.Error(err)
	}
	if q.Open() {
		t.Error("open")
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if _, err := q.Enqueue(within(t), jobqueue.Job{}); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("closed: %v", err)
	}
}

// A process that is slow to take what the engine has sent, as under load, lost what was beyond 64 MB:
// those jobs came again after AckWait, and with one attempt they were dead letters without a run.
func TestNoJobIsDroppedOnItsWayToASlowProcess(t *testing.T) {
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir(), NoSync: true})
	check(t, err)
	end(t, "the server is closed", func() { _ = server.Close(context.Background()) })
	q := open(t, Config{Server: server, MaxBytes: 256 << 20, MaxInFlight: 100})
	const jobs, bytes = 70, 1000 << 10 // more than 64 MB
	for range jobs {
		enqueue(t, q, jobqueue.Job{Payload: make([]byte, bytes)})
	}
	await.True(t, "all are ready", func() bool { return stats(t, q).Ready == jobs }) // the server counts them a moment later
	taken, p := 0, q.pull(q.names.jobs, spillway.Normal.String())
	err = p.now(jobs+1, func(*nats.Msg) {
		if taken++; taken == 1 {
			await.True(t, "all have come", func() bool {
				waiting, _, _ := p.replies.Pending()
				dropped, _ := p.replies.Dropped()
				return waiting+dropped >= jobs-1
			})
		}
	})
	if taken != jobs || err != nil {
		t.Errorf("%d of %d jobs, %v", taken, jobs, err)
	}
}
