package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
)

// mostPending bounds how many jobs of one priority may be delayed, wait for the next
// attempt or run. More of them wait behind these, because the server goes through all
// of them for each that becomes due.
const mostPending = 50_000

const slotConsumer = "slots"

// queue is a jobqueue.Queue.
type queue struct {
	cfg   Config
	names names
	nc    *nats.Conn
	js    js.JetStream

	jobs, dead, returns js.Stream
	ready               [len(priorities)]js.Consumer
	slots               js.Consumer
	inFlight            int
	ackWait             time.Duration

	link     link
	commits  committer
	clock    serverClock
	advice   advice
	counters counters
	suspects suspects

	mu       sync.Mutex
	workers  map[*worker]struct{}
	draining chan struct{} // closed: the intake is closed, Work takes no more jobs
	drained  bool
	closing  context.Context // ends when handlers have to
	close    context.CancelCauseFunc
	closed   bool
	working  sync.WaitGroup // calls of Work

	stragglers sync.WaitGroup // answers that Work did not wait for
	hangUp     func()         // closes the connection
}

type counters struct {
	enqueued, duplicates, refused, done, retried, deferred, buried, lost atomic.Uint64
	running                                                              atomic.Int64
}

// errTooOld is of a server that waiting will not make newer.
var errTooOld = errors.New("the engine cannot keep the queue")

// Open connects, makes what is missing of the queue, and returns it. An engine that does
// not answer for Config.Wait, or until ctx ends, is an error that matches
// jobqueue.ErrUnavailable. One that is slow and answers has a dozen things to make, each
// on its disk: Open takes as long as they do. The server must be NATS 2.12.1 or newer. The error of a wrong Config names every
// field, one on a line.
func Open(ctx context.Context, cfg Config) (jobqueue.Queue, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.fill()
	q := &queue{cfg: cfg, names: namesOf(cfg.Name), workers: map[*worker]struct{}{}, draining: make(chan struct{})}
	q.closing, q.close = context.WithCancelCause(context.Background())
	q.commits = committer{send: q.send, rest: q.rest}
	connecting, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	if err := q.connect(connecting); err != nil {
		return nil, err
	}
	q.link.renew()
	events := q.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	q.hangUp = sync.OnceFunc(func() { q.nc.Close(); q.nc.RemoveStatusListener(events) })
	go q.link.watch(events) // ends with hangUp
	if err := q.prepare(answerByAnswer{ctx}); err != nil {
		q.hangUp()
		return nil, fmt.Errorf("jetstream: preparing queue %s: %w", cfg.Name, q.unavailable(ctx, err))
	}
	return q, nil
}

func (q *queue) connect(ctx context.Context) error {
	log := q.cfg.Logger.With("queue", q.cfg.Name)
	options := append([]nats.Option{
		nats.Name("spillway jobs " + q.cfg.Name), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.Timeout(q.cfg.Wait),
		nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 500*time.Millisecond),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if q.closing.Err() == nil { // otherwise it is Close that ends it
				log.Warn("connection to the job engine lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("connection to the job engine is back")
			if err := q.restore(nc); err != nil && q.closing.Err() == nil {
				log.Error("the job engine has lost the queue, and it cannot be made again", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("job engine", "error", err) }),
	}, q.cfg.Options...)
	if q.cfg.Server != nil {
		options = append(options, nats.InProcessServer(q.cfg.Server))
	}
	for {
		nc, err := nats.Connect(q.cfg.URL, options...)
		if err == nil {
			q.nc = nc
			break
		}
		if errors.Is(err, nats.ErrAuthorization) || !pause(ctx, retryPause) {
			return fmt.Errorf("%w: connecting: %w", jobqueue.ErrUnavailable, err)
		}
	}
	client, err := js.New(q.nc, js.WithDefaultTimeout(q.cfg.Wait))
	q.js = client
	return err
}

// answerByAnswer hides when a context ends, so that each question to the engine that is
// asked with it has the client's own time for its answer, which is Config.Wait.
type answerByAnswer struct{ context.Context }

func (answerByAnswer) Deadline() (time.Time, bool) { return time.Time{}, false }

// restore makes the queue again on an engine that has come back without its data. It works
// on a copy: what the queue itself has names the same streams, and is in use.
func (q *queue) restore(nc *nats.Conn) error {
	ctx := answerByAnswer{q.closing}
	again := &queue{cfg: q.cfg, names: q.names, nc: nc}
	var err error
	if again.js, err = js.New(nc, js.WithDefaultTimeout(q.cfg.Wait)); err != nil {
		return err
	}
	if _, err = again.js.Stream(ctx, q.names.jobs); !errors.Is(err, js.ErrStreamNotFound) {
		return nil // it is there, or the engine is away again
	}
	q.cfg.Logger.Warn("the job engine has lost the queue: it is made again, without its jobs", "queue", q.cfg.Name)
	return again.prepare(ctx)
}

// prepare makes streams and consumers, or adapts them to the Config.
func (q *queue) prepare(ctx context.Context) error {
	if err := q.prepareJobs(ctx); err != nil {
		return err
	}
	dead := js.StreamConfig{
		Name: q.names.dead, Subjects: []string{q.names.deadOf("*")}, Storage: js.FileStorage, Replicas: max(q.cfg.Replicas, 1),
		AllowDirect: true, Duplicates: defaultDedupe,
	}
	var err error
	if q.dead, err = q.ensure(ctx, dead, func(c *js.StreamConfig) {
		if q.cfg.Replicas > 0 {
			c.Replicas = q.cfg.Replicas
		}
	}); err != nil {
		return err
	}
	if err := q.prepareReturns(ctx); err != nil {
		return err
	}
	return q.prepareSlots(ctx)
}

func (q *queue) prepareJobs(ctx context.Context) (err error) {
	cfg := js.StreamConfig{
		Name: q.names.jobs, Storage: js.FileStorage, Retention: js.WorkQueuePolicy, Discard: js.DiscardNew,
		MaxMsgs: orElse(int64(q.cfg.MaxQueued), defaultQueued), MaxBytes: orElse(q.cfg.MaxBytes, defaultBytes),
		Duplicates: orElse(q.cfg.Dedupe, defaultDedupe), Replicas: max(q.cfg.Replicas, 1), AllowAtomicPublish: true,
	}
	for _, p := range priorities {
		cfg.Subjects = append(cfg.Subjects, q.names.ready(p))
	}
	for {
		q.jobs, err = q.ensure(ctx, cfg, func(c *js.StreamConfig) {
			c.AllowAtomicPublish = true
			c.MaxMsgs = orElse(int64(q.cfg.MaxQueued), c.MaxMsgs)
			c.MaxBytes = orElse(q.cfg.MaxBytes, c.MaxBytes)
			c.Duplicates = orElse(q.cfg.Dedupe, c.Duplicates)
			c.Replicas = orElse(q.cfg.Replicas, c.Replicas)
		})
		if !noRoom(err) || q.cfg.MaxBytes > 0 || cfg.MaxBytes/2 < leastBytes {
			break
		}
		cfg.MaxBytes /= 2 // the default is more than the server has
	}
	switch {
	case noRoom(err):
		return fmt.Errorf("%w: the server has no room for MaxBytes, %d MiB: set less, free its disk, or raise its limit (embedded.Config.MaxBytes, jetstream.max_file_store)", jobqueue.ErrDiskFull, cfg.MaxBytes>>20)
	case err != nil:
		return err
	case !q.jobs.CachedInfo().Config.AllowAtomicPublish: // an older server ignores what it does not know
		return fmt.Errorf("%w: the server is NATS %s: 2.12.1 or newer is needed", errTooOld, q.nc.ConnectedServerVersion())
	}
	if q.cfg.MaxBytes == 0 && cfg.MaxBytes < defaultBytes {
		q.cfg.Logger.Warn("the server has less room than a queue takes by default: set MaxBytes when it has more", "queue", q.cfg.Name, "bytes", cfg.MaxBytes)
	}
	q.clock.set(q.jobs.CachedInfo().TimeStamp)
	for i, p := range priorities {
		q.ready[i], err = q.consumer(ctx, q.jobs, p.String(), q.names.ready(p), mostPending)
		if err != nil {
			return err
		}
	}
	q.ackWait = q.ready[0].CachedInfo().Config.AckWait
	return nil
}

// noRoom tells a stream that is larger than what the server has left.
func noRoom(err error) bool {
	api, ok := errors.AsType[*js.APIError](err)
	return ok && (api.ErrorCode == codeNoStorage || api.ErrorCode == codeStorageFull)
}

// ensure makes a stream, or changes the one that exists.
func (q *queue) ensure(ctx context.Context, cfg js.StreamConfig, change func(*js.StreamConfig)) (js.Stream, error) {
	stream, err := q.js.Stream(ctx, cfg.Name)
	if errors.Is(err, js.ErrStreamNotFound) {
		stream, err = q.js.CreateStream(ctx, cfg)
		if !errors.Is(err, js.ErrStreamNameAlreadyInUse) {
			return stream, err
		}
		stream, err = q.js.Stream(ctx, cfg.Name) // another process was faster
	}
	if err != nil {
		return nil, err
	}
	now := stream.CachedInfo().Config
	wanted := now
	change(&wanted)
	if wanted.MaxMsgs == now.MaxMsgs && wanted.MaxBytes == now.MaxBytes && wanted.Duplicates == now.Duplicates &&
		wanted.Replicas == now.Replicas && wanted.AllowAtomicPublish == now.AllowAtomicPublish {
		return stream, nil
	}
	return q.js.UpdateStream(ctx, wanted)
}

func (q *queue) consumer(ctx context.Context, stream js.Stream, name, subject string, pending int) (js.Consumer, error) {
	cfg := js.ConsumerConfig{
		Durable: name, AckPolicy: js.AckExplicitPolicy, MaxDeliver: -1, MaxAckPending: pending, MaxWaiting: mostInFlight,
		FilterSubject: subject, AckWait: orElse(q.cfg.AckWait, defaultAckWait),
	}
	if existing, err := stream.Consumer(ctx, name); err == nil && q.cfg.AckWait == 0 {
		cfg.AckWait = existing.CachedInfo().Config.AckWait
	}
	return stream.CreateOrUpdateConsumer(ctx, cfg)
}

// prepareSlots makes as many slots as handlers may run.
func (q *queue) prepareSlots(ctx context.Context) error {
	cfg := js.StreamConfig{
		Name: q.names.slots, Subjects: []string{q.names.slot("*")}, Storage: js.FileStorage, Retention: js.WorkQueuePolicy,
		Discard: js.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1, Replicas: max(q.cfg.Replicas, 1),
		Metadata: map[string]string{"slots": strconv.Itoa(orElse(q.cfg.MaxInFlight, defaultInFlight()))},
	}
	stream, err := q.ensure(ctx, cfg, func(c *js.StreamConfig) { c.Replicas = orElse(q.cfg.Replicas, c.Replicas) })
	if err != nil {
		return err
	}
	found := stream.CachedInfo().Config
	was, _ := strconv.Atoi(found.Metadata["slots"])
	q.inFlight = orElse(q.cfg.MaxInFlight, max(was, 1))
	if was != q.inFlight {
		found.Metadata["slots"] = strconv.Itoa(q.inFlight)
		if stream, err = q.js.UpdateStream(ctx, found); err != nil {
			return err
		}
	}
	for i := q.inFlight; i < was; i++ {
		if err := stream.Purge(ctx, js.WithPurgeSubject(q.names.slot(strconv.Itoa(i)))); err != nil {
			return err
		}
	}
	if server, ok := q.cfg.Server.(interface {
		OnFirstOpen(queue string, free func() error) error
	}); ok {
		if err := server.OnFirstOpen(q.cfg.Name, func() error { return freeSlots(ctx, stream) }); err != nil {
			return err
		}
	}
	if q.slots, err = q.consumer(ctx, stream, slotConsumer, q.names.slot("*"), mostInFlight); err != nil {
		return err
	}
	if info := stream.CachedInfo(); info.State.Msgs >= uint64(q.inFlight) && was == q.inFlight {
		return nil
	}
	for i := range q.inFlight {
		_, err := q.js.Publish(ctx, q.names.slot(strconv.Itoa(i)), nil)
		if api, ok := errors.AsType[*js.APIError](err); err != nil && !(ok && api.ErrorCode == codeStoreFailed) {
			return err // refused as full is fine: the slot exists
		}
	}
	return nil
}

// freeSlots takes the slots from processes that have ended. Left to itself the engine waits
// for AckWait before it takes them from one that was killed, and no job would run until then.
func freeSlots(ctx context.Context, stream js.Stream) error {
	if err := stream.DeleteConsumer(ctx, slotConsumer); !errors.Is(err, js.ErrConsumerNotFound) {
		return err
	}
	return nil
}

// orElse is cmp.Or for a value that is not negative and a default of its own type.
func orElse[T int | int64 | time.Duration](value, fallback T) T {
	if value > 0 {
		return value
	}
	return fallback
}
