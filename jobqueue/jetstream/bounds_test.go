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

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

func TestFullQueueSaysSo(t *testing.T) {
	q := open(t, Config{MaxQueued: 10})
	var stored, full atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := q.Enqueue(within(t), jobqueue.Job{})
			r, refused := errors.AsType[*spillway.Rejection](err)
			switch {
			case err == nil:
				stored.Add(1)
			case refused && r.Reason == spillway.QueueFull && r.RetryAfter > 0:
				full.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if stored.Load() != 10 || full.Load() != 40 {
		t.Errorf("%d stored, %d refused", stored.Load(), full.Load())
	}
	if n, err := q.Purge(within(t), jobqueue.Waiting); n != 10 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	enqueue(t, q, jobqueue.Job{})
}

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
	if s := stats(t, q); s.Ready != jobs {
		t.Errorf("%+v", s)
	}
}

func TestTooLargeAtOnce(t *testing.T) {
	q := open(t, Config{})
	if _, err := q.Enqueue(within(t), jobqueue.Job{Payload: make([]byte, 2<<20)}); !errors.Is(err, jobqueue.ErrTooLarge) {
		t.Error(err)
	}
	enqueue(t, q, jobqueue.Job{Payload: make([]byte, 1<<20-roomForReason-200)})
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
	if err != nil {
		t.Fatal(err)
	}
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

// A server whose limit is lowered while clients are connected does not tell them, and ends the
// connection of one that exceeds it. The client library does not open it again.
func TestAConnectionThatTheServerEndsForGoodIsNamed(t *testing.T) {
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, MaxPayload: 64 << 10}
	s := node(t, o)
	log := &said{}
	q := open(t, Config{URL: s.ClientURL(), Logger: log.logger()})
	lower := o.Clone()
	lower.MaxPayload = 4 << 10
	if err := s.ReloadOptions(lower); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() { _, _ = q.Enqueue(ctx, jobqueue.Job{Payload: make([]byte, 20<<10)}) }()
	await.True(t, "it is in the log", func() bool { return strings.Contains(strings.Join(log.lines(), ""), "for good") })
	if _, err := q.Stats(within(t)); !errors.Is(err, jobqueue.ErrUnavailable) || !strings.Contains(err.Error(), "open the queue again") {
		t.Error(err)
	}
}

func TestHandlersAreBoundedOverAllQueues(t *testing.T) {
	server := serve(t, t.TempDir())
	const most = 3
	var running, peak, done atomic.Int32
	release := make(chan struct{})
	handler := func(context.Context, *jobqueue.Delivery) error {
		now := running.Add(1)
		defer running.Add(-1)
		for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
		}
		<-release
		done.Add(1)
		return nil
	}
	a := open(t, Config{Server: server, MaxInFlight: most})
	b := open(t, Config{Server: server})
	for range 20 {
		enqueue(t, a, jobqueue.Job{})
	}
	work(t, a, handler)
	work(t, a, handler)
	work(t, b, handler)
	await.True(t, "as many run as may", func() bool { return running.Load() == most })
	if s := stats(t, b); s.InFlight < most {
		t.Errorf("%+v", s)
	}
	close(release)
	await.True(t, "all are done", func() bool { return done.Load() == 20 })
	if p := peak.Load(); p > most {
		t.Errorf("%d ran at once", p)
	}
}
