package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/limiter"
)

func listen(t *testing.T, dir, address string) *embedded.Server {
	t.Helper()
	var s *embedded.Server
	await.True(t, "the server starts", func() bool { // another process may briefly have the port
		var err error
		if s, err = embedded.Start(embedded.Config{Dir: dir, Listen: address}); err != nil {
			t.Log(err)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func TestEngineThatIsAwayAtTheStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	url := "nats://" + l.Addr().String()
	l.Close()
	if _, err := Open(within(t), Config{URL: url, Wait: 100 * time.Millisecond}); !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Config{URL: url}); err == nil {
		t.Error("opened")
	}
	opened := make(chan error, 1)
	go func() {
		q, err := Open(within(t), Config{URL: url, Wait: 10 * await.Limit})
		if err == nil {
			err = q.Close()
		}
		opened <- err
	}()
	listen(t, t.TempDir(), strings.TrimPrefix(url, "nats://"))
	if err := await.Receive(t, "Open returns", opened); err != nil {
		t.Errorf("Open while the engine comes: %v", err)
	}
}

func TestToCloseIsNoFault(t *testing.T) {
	var log bytes.Buffer
	closed := make(chan struct{}) // closed after all other events of the connection
	q := open(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Options: []nats.Option{nats.ClosedHandler(func(*nats.Conn) { close(closed) })}})
	check(t, q.Close())
	await.Receive(t, "the connection is closed", closed)
	if log.Len() > 0 {
		t.Error("the log says", log.String())
	}
}

func TestEngineGoesAwayAndComesBack(t *testing.T) {
	dir := t.TempDir()
	first := listen(t, dir, "127.0.0.1:0")
	q := open(t, Config{URL: first.URL(), Wait: time.Second})
	var done sync.Map
	var count atomic.Int32
	hold := make(chan struct{})
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Key == "held" {
			<-hold // ends while the engine is away
		}
		if _, twice := done.LoadOrStore(d.Key, true); !twice {
			count.Add(1)
		}
		return nil
	})
	for _, key := range []string{"before", "held"} {
		await.True(t, key+" is stored", func() bool { // Wait is short, and the disk may be slow
			_, err := q.Enqueue(within(t), jobqueue.Job{Key: key})
			return err == nil
		})
	}
	await.True(t, "a job is done", func() bool { return count.Load() == 1 })
	await.True(t, "a job is held", func() bool { return q.counters.running.Load() == 1 })
	check(t, first.Close(within(t)))
	if _, err := q.Enqueue(within(t), jobqueue.Job{Key: "away"}); !errors.Is(err, jobqueue.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("away: %v", err)
	}
	if _, err := q.Stats(within(t)); !errors.Is(err, jobqueue.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stats: %v", err)
	}
	if _, err := q.Dead(within(t), 1); err == nil {
		t.Errorf("dead letters of an engine that is away")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Enqueue(ctx, jobqueue.Job{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	late, pass := await.Deadline(t.Context())
	pass()
	if _, err := q.Enqueue(late, jobqueue.Job{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline that has passed: %v", err)
	}
	close(hold)
	listen(t, dir, strings.TrimPrefix(first.URL(), "nats://"))
	await.True(t, "jobs are stored again", func() bool {
		_, err := q.Enqueue(within(t), jobqueue.Job{Key: "after"})
		return err == nil
	})
	await.True(t, "all are done", func() bool {
		s, err := q.Stats(within(t))
		return err == nil && count.Load() >= 3 && s.Ready+s.InFlight+s.Delayed == 0
	})
}

// taken returns a message in the form in which a worker receives it.
func taken(t *testing.T, q *queue) (msg *nats.Msg) {
	t.Helper()
	p := q.pull(q.names.jobs, spillway.Normal.String())
	if err := p.wait(within(t), func(m *nats.Msg) { msg = m }); err != nil || msg == nil {
		t.Fatal("nothing to take:", err)
	}
	return msg
}

// An engine came back without its data, on a new disk. It refused every job until the process was
// restarted, though the log reported that the connection was back.
func TestAnEngineThatLostItsDataIsUsedAgain(t *testing.T) {
	first := listen(t, t.TempDir(), "127.0.0.1:0")
	q := open(t, Config{URL: first.URL(), Wait: 10 * time.Second})
	var done atomic.Int32
	work(t, q, func(context.Context, *jobqueue.Delivery) error {
		done.Add(1)
		return nil
	})
	await.True(t, "a job is stored", func() bool { // Wait is short, and the disk may be slow
		_, err := q.Enqueue(within(t), jobqueue.Job{Key: "before"})
		return err == nil
	})
	await.True(t, "a job is done", func() bool { return done.Load() == 1 })
	check(t, first.Close(within(t)))
	listen(t, t.TempDir(), strings.TrimPrefix(first.URL(), "nats://"))
	await.True(t, "a job is stored again", func() bool {
		_, err := q.Enqueue(within(t), jobqueue.Job{Key: "after"})
		return err == nil
	})
	await.True(t, "and done", func() bool { return done.Load() == 2 })
}

func TestBuriedTwiceIsOneDeadLetter(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{Key: "k"})
	msg := taken(t, q)
	// The first worker dies between the dead letter and the removal of the job.
	first := q.receive(msg, time.Now())
	for range 2 { // the answer to the first try is lost
		if written, err := q.inter(within(t), first, "first"); !written || err != nil {
			t.Fatal(written, err)
		}
	}
	// The engine was killed, and delivers the job again. Buried counted this burial too.
	if written, err := q.inter(within(t), q.receive(msg, time.Now()), "second"); written || err != nil {
		t.Fatal(written, err)
	}
	_ = msg.Nak()
	work(t, q, func(context.Context, *jobqueue.Delivery) error { t.Error("a dead letter was run"); return nil })
	await.True(t, "the job is gone", func() bool { s := stats(t, q); return s.Depth == jobqueue.Depth{} && s.Buried == 0 })
	letters, err := q.Dead(within(t), 10)
	if err != nil || len(letters) != 1 || letters[0].Reason != "first" {
		t.Errorf("%+v, %v", letters, err)
	}
}

func TestJobWhoseWorkersDieBecomesADeadLetter(t *testing.T) {
	q := open(t, Config{Policy: jobqueue.Policy{MaxAttempts: 2}})
	enqueue(t, q, jobqueue.Job{Key: "poison"})
	for range 2 { // workers that took the job and died
		_ = taken(t, q).Nak()
	}
	work(t, q, func(context.Context, *jobqueue.Delivery) error { t.Error("it was run"); return nil })
	await.True(t, "a dead letter", func() bool { return stats(t, q).Dead == 1 })
}

// A limiter that rejects many requests may advise a retry in a minute. It can have room long before
// then, if other callers stop. The advice of a handler's backend is not shortened: the job waits at
// the engine.
func TestTheLimiterOfTheProcessIsSoonAskedAgain(t *testing.T) {
	w := &worker{q: open(t, Config{}), ctx: t.Context()}
	enqueue(t, w.q, jobqueue.Job{})
	full := &spillway.Rejection{Reason: spillway.ReasonQuota, RetryAfter: time.Minute}
	own, below := &task{}, w.q.receive(taken(t, w.q), time.Now())
	if w.refused(own, full); own.after != limiterAgain || own.away {
		t.Errorf("asked again after %s", own.after)
	}
	if w.settle(below, false, full); !below.away {
		t.Errorf("run again after %s", below.after)
	}
}

// Once the limiter had refused many jobs, each of them waited for a second of its own while slots
// were free. Now the end of a job makes the job that has waited longest ask the limiter again.
func TestTheEndOfAJobHasTheLimiterAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{slots: &slotHolder{}, deferred: map[*task]*time.Timer{}, due: make(chan *task, 9)}
		var refused []*task
		for range 3 {
			one := &task{after: limiterAgain, limited: true}
			refused = append(refused, one)
			w.over(ending{&slot{since: time.Now()}, one})
		}
		if len(w.again) > 0 {
			t.Errorf("%d are asked for again though no job has ended", len(w.again))
		}
		w.over(ending{&slot{since: time.Now()}, &task{}}) // a job is done
		if len(w.again) != 1 || w.again[0] != refused[0] || len(w.limited) != 2 {
			t.Errorf("%d are asked for again, %d wait", len(w.again), len(w.limited))
		}
		time.Sleep(limiterAgain)
		synctest.Wait()
		if len(w.due) != 2 {
			t.Errorf("%d are due after %v", len(w.due), limiterAgain)
		}
	})
}

// On a slow machine a deferred job was due whenever a slot became free. Deferred jobs then took every
// slot: other jobs starved, and the floor of the lower priorities did not help.
func TestDeferredJobsThatAreDueLeaveSlotsToOthers(t *testing.T) {
	const due = "due"
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{Priority: spillway.Low})
	var ran jobqueue.Job
	w := q.worker(func(_ context.Context, d *jobqueue.Delivery) error {
		if ran = d.Job; ran.Key == due {
			return jobqueue.NotYet(time.Minute, nil)
		}
		return nil
	})
	w.ctx, w.slots, w.kept.silence = t.Context(), &slotHolder{}, time.Hour
	start := func() jobqueue.Job { // with one free slot, a job that is due, and one at the engine
		enqueue(t, q, jobqueue.Job{Priority: spillway.Critical})
		again := &task{job: jobqueue.Job{Key: due}, msg: &nats.Msg{}, deliveries: 1, attempt: 1, enqueued: time.Now(), taken: time.Now()}
		w.kept.add(again.msg)
		w.again = append(w.again, again)
		w.slots.idle = []*slot{{}}
		w.startSome(t.Context())
		await.Receive(t, "the run has ended", w.ended)
		w.running--
		return ran
	}
	for w.started < floorEvery {
		if one, two := start(), start(); one.Key == two.Key || one.Priority+two.Priority != spillway.Critical {
			t.Fatalf("after %d starts: %+v and %+v, not a job that was due and one of the engine", w.started, one, two)
		}
	}
	if one, two := start(), start(); one.Priority != spillway.Low && two.Priority != spillway.Low {
		t.Errorf("after %d starts: %+v and %+v, none of the lower priority", floorEvery, one, two)
	}
}

// Jobs that the limiter refuses are held up to the number that may run. All of them are done once
// the limiter has room.
func TestJobsThatTheLimiterRefusesAreDoneWhenItHasRoom(t *testing.T) {
	refusedAtFirst(t, 16, 60, func() {})
}

// refusedAtFirst makes a limiter refuse all jobs, and then admit two at a time. It returns how
// often the jobs were deferred after that, and how long they took.
func refusedAtFirst(t *testing.T, most, jobs uint64, handle func()) (deferred uint64, took time.Duration) {
	lim, err := limiter.New(limiter.Config{})
	check(t, err)
	lim.SetLease(0, time.Now().Add(time.Hour), "shared")
	q := open(t, Config{Limiter: lim, MaxInFlight: int(most)})
	for range jobs {
		enqueue(t, q, jobqueue.Job{})
	}
	work(t, q, func(context.Context, *jobqueue.Delivery) error { handle(); return nil })
	await.True(t, "as many are deferred as may run", func() bool { return q.counters.deferred.Load() >= most })
	info, err := q.ready[slices.Index(priorities[:], spillway.Normal)].Info(within(t))
	if err != nil || info.NumAckPending > int(most) {
		t.Errorf("%d are in hand, which the limiter refuses: %v", info.NumAckPending, err)
	}
	before, began := q.counters.deferred.Load(), time.Now()
	lim.SetLease(2, time.Now().Add(time.Hour), "shared")
	await.True(t, "all are done", func() bool { return q.counters.done.Load() == jobs })
	return q.counters.deferred.Load() - before, time.Since(began)
}

// A worker kept the jobs that its limiter refused for as long as it lived, while another one had
// nothing to do.
func TestJobsThatTheLimiterRefusesGoToOthers(t *testing.T) {
	lim, err := limiter.New(limiter.Config{})
	check(t, err)
	lim.Close() // refuses everything
	const most = 4
	server := serve(t, t.TempDir())
	q, other := open(t, Config{Server: server, Limiter: lim, MaxInFlight: most}), open(t, Config{Server: server})
	for range 2 * most {
		enqueue(t, q, jobqueue.Job{})
	}
	work(t, q, func(context.Context, *jobqueue.Delivery) error { return nil })
	await.True(t, "as many are deferred as may run", func() bool { return q.counters.deferred.Load() >= most })
	work(t, other, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Attempt != 1 {
			t.Errorf("a job that was refused elsewhere is at attempt %d", d.Attempt)
		}
		return nil
	})
	await.True(t, "the other does all", func() bool { return other.counters.done.Load() == 2*most })
}

// A stopping worker takes back its requests for jobs. In a cluster the leader of the consumer hears
// of it last, and used to send a job to nobody. With one attempt the job was buried without a run.
func TestARequestThatIsTakenBackInAClusterLosesNoJob(t *testing.T) {
	for i, url := range cluster(t, 3) { // at most one of them is the leader's URL
		q := open(t, Config{Name: fmt.Sprint("q", i), URL: url})
		p, consumer := q.pull(q.names.jobs, spillway.Normal.String()), q.ready[slices.Index(priorities[:], spillway.Normal)]
		status := func() *js.ConsumerInfo {
			info, err := consumer.Info(within(t))
			check(t, err)
			return info
		}
		for n := range 40 {
			taken := make(chan *nats.Msg, 1)
			take := func(m *nats.Msg) { taken <- m }
			ctx, cancel := context.WithCancel(t.Context())
			var asking sync.WaitGroup
			asking.Go(func() { _ = p.wait(ctx, take) })
			await.True(t, "the request is there", func() bool { return status().NumWaiting == 1 })
			asking.Go(func() {
				for range 100 * n { // a little later each time
					runtime.Gosched()
				}
				cancel()
			})
			enqueue(t, q, jobqueue.Job{})
			asking.Wait()
			if len(taken) == 0 {
				await.True(t, "the job is there", func() bool { i := status(); return i.NumPending+uint64(i.NumAckPending) == 1 })
				check(t, p.now(1, take))
			}
			if len(taken) == 0 {
				t.Fatalf("round %d: the job went to nobody: %+v", n, status())
			}
			check(t, (<-taken).AckSync())
		}
		p.end(func(*nats.Msg) {})
	}
}

// cluster starts nodes on loopback and returns their URLs. A node takes any port for its routes.
// Each further node knows the node before it.
func cluster(t *testing.T, size int) (urls []string) {
	t.Helper()
	var nodes []*server.Server
	seed := ""
	for i := range size {
		o := &server.Options{
			ServerName: fmt.Sprint("node-", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
			NoSigs: true, NoLog: true, SyncAlways: true, Routes: server.RoutesFromStr(seed),
		}
		o.Cluster.Name, o.Cluster.Host, o.Cluster.Port = "test", "127.0.0.1", server.RANDOM_PORT
		one := node(t, o)
		seed = "nats://" + one.ClusterAddr().String()
		nodes, urls = append(nodes, one), append(urls, one.ClientURL())
	}
	await.True(t, "the nodes are a cluster", func() bool {
		for _, n := range nodes {
			if n.JetStreamIsCurrent() && len(n.JetStreamClusterPeers()) == size {
				return true
			}
		}
		return false
	})
	return urls
}

func node(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	check(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(await.Limit) {
		t.Fatal("a server does not start")
	}
	return s
}

func TestServerTimeGoesOnWithoutTheLocalClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c serverClock
		server := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC) // differs from the local clock
		c.set(server)
		time.Sleep(time.Hour)
		if now := c.now(); !now.Equal(server.Add(time.Hour)) {
			t.Errorf("it is %s", now)
		}
	})
}
