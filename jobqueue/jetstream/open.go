package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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

	parts    parts
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

// errUnfit is of a server that waiting will not make newer, and of streams that it will not make
// fit.
var errUnfit = errors.New("the engine cannot keep the queue")

// Open connects, makes what is missing of the queue, and returns it. An engine that does
// not answer for Config.Wait, or until ctx ends, is an error that matches
// jobqueue.ErrUnavailable. One that is slow and answers has a dozen things to make, each
// on its disk: Open takes as long as they do. The server must be NATS 2.12.1 or newer. The error of a wrong Config names every
// field, one on a line.
//
// Streams of the queue's name that exist are compared with what the queue promises: retention,
// discard policy, age, storage, subjects, sizes and the like. What differs is changed, and
// logged; where the server cannot change it, the error says which field and what to do.
func Open(ctx context.Context, cfg Config) (jobqueue.Queue, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.fill()
	q := &queue{cfg: cfg, names: namesOf(cfg.Name), workers: map[*worker]struct{}{}, draining: make(chan struct{})}
	q.closing, q.close = context.WithCancelCause(context.Background())
	q.parts.turn = make(chan struct{}, 1)
	q.commits = committer{send: q.send, rest: q.rest}
	connecting, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	if err := q.connect(connecting); err != nil {
		return nil, err
	}
	q.link.renew(errLink)
	events := q.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	q.hangUp = sync.OnceFunc(func() { q.nc.Close(); q.nc.RemoveStatusListener(events) })
	go q.link.watch(events)    // ends with hangUp
	q.parts.turn <- struct{}{} // a connection that comes back meanwhile has nothing to look at
	err := q.prepare(answerByAnswer{ctx})
	for tries := 1; tries < prepareTries && lacksFiles(err, codeStreamFiles) && pause(connecting, retryPause); tries++ {
		q.parts.streams, q.parts.consumers = nil, nil
		err = q.prepare(answerByAnswer{ctx})
	}
	q.parts.whole = err == nil
	<-q.parts.turn
	if err != nil {
		q.hangUp()
		return nil, fmt.Errorf("jetstream: preparing queue %s: %w", cfg.Name, q.unavailable(ctx, err))
	}
	return q, nil
}

// prepareTries is how often Open tries to make the parts of a queue: a server that is just removing
// a stream cannot make one of its name.
const prepareTries = 5

// lacksFiles reports whether a server says with that code that a file or a folder of its own is
// gone.
func lacksFiles(err error, code js.ErrorCode) bool {
	api, ok := errors.AsType[*js.APIError](err)
	return ok && api.ErrorCode == code && (code == codeStreamFiles || strings.Contains(api.Description, "no such file"))
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
		nats.ReconnectHandler(func(*nats.Conn) {
			log.Info("connection to the job engine is back")
			q.mend(q.closing, true) // it may have come back without its data
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

// prepare makes streams and consumers, or adapts them to the Config. What exists is looked at
// before anything is made, so that a queue that cannot be opened leaves nothing behind.
func (q *queue) prepare(ctx context.Context) error {
	jobs, others := q.jobsConfig(), []js.StreamConfig{q.deadConfig(), q.returnsConfig(), q.slotsConfig()}
	for _, cfg := range append(others, jobs) {
		stream, err := q.js.Stream(ctx, cfg.Name)
		if errors.Is(err, js.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if _, _, err := adapt(stream.CachedInfo().Config, cfg); err != nil {
			return err
		}
	}
	if err := q.prepareJobs(ctx, jobs); err != nil {
		return err
	}
	replicas := func(c *js.StreamConfig) { c.Replicas = orElse(q.cfg.Replicas, c.Replicas) }
	var err error
	if q.dead, _, err = q.ensure(ctx, others[0], replicas); err != nil {
		return err
	}
	if q.returns, _, err = q.ensure(ctx, others[1], replicas); err != nil {
		return err
	}
	q.parts.keepStream(q.jobs)
	q.parts.keepStream(q.dead)
	q.parts.keepStream(q.returns)
	return q.prepareSlots(ctx, others[2], replicas)
}

func (q *queue) jobsConfig() js.StreamConfig {
	cfg := js.StreamConfig{
		Name: q.names.jobs, Storage: js.FileStorage, Retention: js.WorkQueuePolicy, Discard: js.DiscardNew,
		MaxMsgs: orElse(int64(q.cfg.MaxQueued), defaultQueued), MaxBytes: orElse(q.cfg.MaxBytes, defaultBytes),
		Duplicates: orElse(q.cfg.Dedupe, defaultDedupe), Replicas: max(q.cfg.Replicas, 1), AllowAtomicPublish: true,
	}
	for _, p := range priorities {
		cfg.Subjects = append(cfg.Subjects, q.names.ready(p))
	}
	return cfg
}

func (q *queue) deadConfig() js.StreamConfig {
	return js.StreamConfig{
		Name: q.names.dead, Subjects: []string{q.names.deadOf("*")}, Storage: js.FileStorage, Replicas: max(q.cfg.Replicas, 1),
		AllowDirect: true, Duplicates: defaultDedupe,
	}
}

func (q *queue) slotsConfig() js.StreamConfig {
	return js.StreamConfig{
		Name: q.names.slots, Subjects: []string{q.names.slot("*")}, Storage: js.FileStorage, Retention: js.WorkQueuePolicy,
		Discard: js.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1, Replicas: max(q.cfg.Replicas, 1),
		Metadata: map[string]string{slotsKey: strconv.Itoa(orElse(q.cfg.MaxInFlight, defaultInFlight()))},
	}
}

func (q *queue) prepareJobs(ctx context.Context, cfg js.StreamConfig) (err error) {
	var made bool
	for {
		q.jobs, made, err = q.ensure(ctx, cfg, func(c *js.StreamConfig) {
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
		err := fmt.Errorf("%w: the server is NATS %s: 2.12.1 or newer is needed", errUnfit, q.nc.ConnectedServerVersion())
		if made { // nobody can have a queue there
			err = errors.Join(err, q.js.DeleteStream(ctx, cfg.Name))
		}
		return err
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

// ensure makes a stream, or changes the one that exists: what promises rest on as in cfg, what
// belongs to Config by change.
func (q *queue) ensure(ctx context.Context, cfg js.StreamConfig, change func(*js.StreamConfig)) (stream js.Stream, made bool, err error) {
	stream, err = q.js.Stream(ctx, cfg.Name)
	if errors.Is(err, js.ErrStreamNotFound) {
		stream, made, err = q.create(ctx, cfg)
	}
	if err != nil || made {
		return stream, made, err
	}
	wanted, changes, err := adapt(stream.CachedInfo().Config, cfg)
	if err != nil {
		return nil, false, err
	}
	now := wanted
	change(&wanted)
	if len(changes) == 0 && sameLimits(now, wanted) {
		return stream, false, nil
	}
	changed, err := q.js.UpdateStream(ctx, wanted)
	if api, ok := errors.AsType[*js.APIError](err); ok && api.Code < 500 && len(changes) > 0 && !noRoom(err) {
		return nil, false, misfit(cfg.Name, strings.Join(changes, ", ")+": "+api.Description)
	}
	if err == nil && len(changes) > 0 {
		q.cfg.Logger.Warn("a stream of the queue had another policy, and was changed", "queue", q.cfg.Name, "stream", cfg.Name, "now", strings.Join(changes, ", "))
	}
	return changed, false, err
}

func (q *queue) consumer(ctx context.Context, stream js.Stream, name, subject string, pending int) (js.Consumer, error) {
	cfg := js.ConsumerConfig{
		Durable: name, AckPolicy: js.AckExplicitPolicy, MaxDeliver: -1, MaxAckPending: pending, MaxWaiting: mostInFlight,
		FilterSubject: subject, AckWait: orElse(q.cfg.AckWait, defaultAckWait),
	}
	if existing, err := stream.Consumer(ctx, name); err == nil && q.cfg.AckWait == 0 {
		cfg.AckWait = existing.CachedInfo().Config.AckWait
	}
	in := stream.CachedInfo().Config.Name
	consumer, err := q.makeConsumer(ctx, in, cfg)
	if api, ok := errors.AsType[*js.APIError](err); ok && (api.Code < 500 || strings.Contains(api.Description, "can not")) { // 500 is also that of a field that is fixed
		return nil, fmt.Errorf("%w: consumer %s of stream %s has another policy, and cannot be changed (%s): delete this consumer, it is made again", errUnfit, name, in, api.Description)
	}
	if err != nil {
		return nil, err
	}
	q.parts.keepConsumer(in, consumer)
	return consumer, nil
}

// makeConsumer makes a consumer, or brings it up to date. A server that removes a consumer takes
// along the files of one that is made at that moment under the same name, and says so when that is
// changed. Such a consumer would be gone when the server starts again, so it is made once more.
func (q *queue) makeConsumer(ctx context.Context, stream string, cfg js.ConsumerConfig) (js.Consumer, error) {
	consumer, err := q.js.CreateOrUpdateConsumer(ctx, stream, cfg)
	if !lacksFiles(err, codeConsumerFiles) {
		return consumer, err
	}
	if err := q.js.DeleteConsumer(ctx, stream, cfg.Durable); err != nil && !errors.Is(err, js.ErrConsumerNotFound) {
		return nil, err
	}
	return q.js.CreateOrUpdateConsumer(ctx, stream, cfg)
}

// prepareSlots makes as many slots as handlers may run.
func (q *queue) prepareSlots(ctx context.Context, cfg js.StreamConfig, change func(*js.StreamConfig)) error {
	stream, _, err := q.ensure(ctx, cfg, change)
	if err != nil {
		return err
	}
	found := stream.CachedInfo().Config
	was := slotsIn(found)
	q.inFlight = orElse(q.cfg.MaxInFlight, orElse(was, defaultInFlight()))
	if was != q.inFlight {
		if stream, err = q.js.UpdateStream(ctx, withSlots(found, q.inFlight)); err != nil {
			return err
		}
	}
	q.parts.keepStream(stream)
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
	_, err = q.fillSlots(ctx, stream)
	return err
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
