package jetstream

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/jobqueue"
)

// The server dies with requests in flight, and is back at once. Config.Wait is longer than
// await.Limit, the test's time limit.
func TestALostConnectionIsNoReasonToWait(t *testing.T) {
	p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
	q := open(t, Config{URL: p.url(), Wait: 10 * await.Limit})
	running, progressed := make(chan *jobqueue.Delivery), make(chan bool)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Key == "long" {
			running <- d
			<-progressed
		}
		return nil
	})
	enqueue(t, q, jobqueue.Job{Key: "long"})
	d := await.Receive(t, "a job runs", running)
	p.set(0, true)
	stored, logged, asked := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { _, err := q.Enqueue(within(t), jobqueue.Job{Key: "under way"}); stored <- err }()
	go func() { logged <- d.Progress(within(t)) }()
	go func() { _, err := q.Stats(within(t)); asked <- err }()
	await.True(t, "all three are under way", func() bool {
		return p.asked(`under way`, `_INBOX\S+ 4\r\n\+WPI`, `CONSUMER\.INFO`)
	})
	p.set(0, false)
	p.cut()
	if err := await.Receive(t, "Enqueue returns", stored); err != nil {
		t.Errorf("Enqueue tries again: %v", err)
	}
	if err := await.Receive(t, "Progress returns", logged); err != nil && !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("Progress: %v", err)
	}
	if err := await.Receive(t, "Stats returns", asked); err != nil && !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("Stats: %v", err)
	}
	close(progressed)
	await.True(t, "both jobs are done once", func() bool { s := stats(t, q); return s.Done == 2 && s.Depth == jobqueue.Depth{} })
}

// The queue waits for a server that answers late, and does nothing twice.
func TestASlowServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	slowServerIsWaitedFor(t, 50*time.Millisecond)
}

// slowServerIsWaitedFor delays each answer of a server.
func slowServerIsWaitedFor(t *testing.T, by time.Duration) {
	p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
	q := open(t, Config{URL: p.url()})
	p.set(by, false)
	const jobs = 10
	errs := make(chan error, jobs)
	for range jobs {
		go func() { _, err := q.Enqueue(within(t), jobqueue.Job{}); errs <- err }()
	}
	for range jobs {
		if err := await.Receive(t, "Enqueue returns", errs); err != nil {
			t.Error(err)
		}
	}
	var runs atomic.Int32
	work(t, q, func(context.Context, *jobqueue.Delivery) error { runs.Add(1); return nil })
	await.True(t, "all are done", func() bool { return q.counters.done.Load() == jobs })
	if n := runs.Load(); n != jobs {
		t.Errorf("%d jobs ran %d times", jobs, n)
	}
}

// A server does not answer within Config.Wait: the caller gets an error, and may send the job again
// with its key.
func TestASlowServerIsNotWaitedForLongerThanSaid(t *testing.T) {
	t.Parallel()
	server := listen(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, server.URL())
	q := open(t, Config{URL: p.url(), Wait: await.Limit})
	q.cfg.Wait = 500 * time.Millisecond // for the next call
	p.set(0, true)
	if _, err := q.Enqueue(within(t), jobqueue.Job{Key: "k"}); !errors.Is(err, jobqueue.ErrUnavailable) || !strings.Contains(err.Error(), "needs a restart") {
		t.Errorf("slower than Wait: %v", err)
	}
	q.cfg.Wait = await.Limit
	p.set(0, false)
	await.True(t, "the job that was sent again is a duplicate", func() bool {
		r, err := q.Enqueue(within(t), jobqueue.Job{Key: "k"})
		return err == nil && r.Duplicate
	})
	var runs atomic.Int32
	work(t, q, func(context.Context, *jobqueue.Delivery) error { runs.Add(1); return nil })
	await.True(t, "it is done", func() bool { s := stats(t, q); return s.Done == 1 && s.Depth == jobqueue.Depth{} })
	if n := runs.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// Each request of Open has Config.Wait for its own answer; the requests share no deadline. A busy
// disk does not mean that the engine is away.
func TestWhatOpenAsksHasNoCommonDeadline(t *testing.T) {
	parent, pass := await.Deadline(t.Context())
	ctx := answerByAnswer{parent}
	if _, has := ctx.Deadline(); has || ctx.Err() != nil {
		t.Errorf("a deadline: %t, ended: %v", has, ctx.Err())
	}
	pass()
	<-ctx.Done()
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its caller's deadline has passed, and it ended with %v", err)
	}
}

// logins lets a server refuse all logins. (New options for a running server would refuse them too, but a
// server that reads new users has a data race of its own.)
type logins struct{ refused atomic.Bool }

func (l *logins) Check(server.ClientAuthentication) bool { return !l.refused.Load() }

// The client library closes a connection for good when the server has refused two logins: Work then
// ran no job again, and Enqueue was unavailable for ever.
func TestRefusedLoginsAreTriedAgain(t *testing.T) {
	var logins logins
	p := newProxy(t, node(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		CustomClientAuthentication: &logins,
	}).ClientURL())
	var log logtest.Log
	var tries atomic.Int32
	q := open(t, Config{
		URL: p.url(), Logger: log.Logger(), AckWait: time.Second,
		Options: []nats.Option{nats.MaxReconnects(1), func(o *nats.Options) error { // a number of tries changes nothing
			o.CustomReconnectDelayCB = func(int) time.Duration { tries.Add(1); return time.Millisecond }
			return nil
		}},
	})
	work(t, q, func(context.Context, *jobqueue.Delivery) error { return nil })
	enqueue(t, q, jobqueue.Job{})
	await.True(t, "a job is done", func() bool { return q.counters.done.Load() == 1 })
	logins.refused.Store(true)
	p.cut()
	await.True(t, "several logins are refused", func() bool { return tries.Load() > 4 })
	await.True(t, "Stats says so", func() bool {
		_, err := q.Stats(within(t))
		return errors.Is(err, jobqueue.ErrUnavailable) && errors.Is(err, nats.ErrAuthorization)
	})
	logins.refused.Store(false)
	await.True(t, "a job is stored again", func() bool {
		_, err := q.Enqueue(within(t), jobqueue.Job{})
		return err == nil
	})
	await.True(t, "and done", func() bool { return q.counters.done.Load() == 2 })
	// The client library tells the queue about the connection a moment later.
	await.True(t, "the log says so", func() bool { return strings.Contains(strings.Join(log.Lines(), ""), "is back") })
	if text := strings.Join(log.Lines(), ""); strings.Count(text, "refuses the login") != 1 {
		t.Errorf("the log says %s", text)
	}
}

// A handler in Options took the place of the queue's own: with a nats.ReconnectHandler nothing that
// an engine had lost was made again.
func TestHandlersInOptionsAreCalledToo(t *testing.T) {
	s := listen(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, s.URL())
	var log logtest.Log
	lost, back, failed, closed := make(chan bool, 100), make(chan bool, 100), make(chan bool, 100), make(chan bool, 1)
	q := open(t, Config{URL: p.url(), Logger: log.Logger(), Options: []nats.Option{
		nats.DisconnectErrHandler(func(*nats.Conn, error) { lost <- true }),
		nats.ReconnectHandler(func(*nats.Conn) { back <- true }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { failed <- true }),
		nats.ClosedHandler(func(*nats.Conn) { closed <- true }),
	}})
	q.nc.Opts.AsyncErrorCB(q.nc, nil, nats.ErrPermissionViolation)
	await.Receive(t, "a fault", failed)
	p.cut()
	await.Receive(t, "the connection is lost", lost)
	await.Receive(t, "the connection is back", back)
	q.nc.Close() // as a handler may
	await.Receive(t, "the connection is closed", closed)
	for _, said := range []string{"permissions violation", "lost", "is back", "for good"} {
		if text := strings.Join(log.Lines(), ""); !strings.Contains(text, said) {
			t.Errorf("the log lacks %q: %s", said, text)
		}
	}
}
