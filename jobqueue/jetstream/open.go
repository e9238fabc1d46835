package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/local"
)

// mostPending bounds the jobs of one priority that are delayed, await the next attempt, or run.
// Further jobs wait behind them. The bound exists because the server scans all pending jobs for
// each job that becomes due.
const mostPending = 50_000

const slotConsumer = "slots"

// queue is a jobqueue.Queue.
type queue struct {
	cfg   Config
	names names
	local local.Engine // nil: the server is given by URL
	nc    *nats.Conn
	js    js.JetStream

	jobs, dead, returns js.Stream
	ready               [len(priorities)]js.Consumer
	slots               js.Consumer
	inFlight            int
	pulls               int // the most that one request may ask for; zero: no bound
	ackWait             time.Duration

	parts    parts
	link     link
	commits  committer
	answers  answers
	clock    serverClock
	advice   advice
	counters counters
	suspects suspects
	ending   endings

	mu       sync.Mutex
	workers  map[*worker]struct{}
	draining chan struct{} // closed: the intake is closed, Work takes no more jobs
	drained  bool
	closing  context.Context // ends when handlers must end
	close    context.CancelCauseFunc
	closed   bool
	working  sync.WaitGroup // running calls of Work

	stragglers sync.WaitGroup // answers that Work did not wait for
	hangUp     func()         // closes the connection
}

type counters struct {
	enqueued, duplicates, refused, done, retried, deferred, buried, lost atomic.Uint64
	running                                                              atomic.Int64
	unsettled                                                            atomic.Int64 // runs whose jobs are at the engine
}

// errUnfit means that the server is too old, or that a stream cannot serve the queue. Waiting does
// not help.
var errUnfit = errors.New("the engine cannot keep the queue")

// Open connects, creates the missing parts of the queue, and returns the queue. If the engine does
// not answer for Config.Wait, or until ctx ends, the error matches jobqueue.ErrUnavailable. A slow
// engine that answers must create a dozen objects, each on disk: Open takes as long as the engine
// does. The server must be NATS 2.12.1 or newer. The error of a wrong Config names every faulty
// field, one on a line.
//
// Open compares existing streams of the queue's name with the queue's promises: retention, discard
// policy, age, storage, subjects, sizes and the like. Open changes deviating fields and logs the
// changes. If the server cannot change a field, the error names the field and the remedy.
func Open(ctx context.Context, cfg Config) (jobqueue.Queue, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.fill()
	q := &queue{cfg: cfg, names: namesOf(cfg.Name), workers: map[*worker]struct{}{}, draining: make(chan struct{})}
	q.closing, q.close = context.WithCancelCause(context.Background())
	q.parts.checking = make(chan struct{}, 1)
	q.commits = committer{alone: fewAlone, send: q.send, rest: q.rest}
	if cfg.Server != nil {
		q.local = cfg.Server.Engine()
	}
	if cfg.NoSync || q.local != nil && !q.local.SyncsAlways() {
		q.commits.alone = math.MaxInt
	}
	connecting, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	if err := q.connect(connecting); err != nil {
		return nil, err
	}
	q.link.renew(errLink)
	q.link.silence.connected, q.link.silence.move, q.link.silence.first = q.nc.IsConnected, q.moved, silentFor
	events := q.nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED)
	q.hangUp = sync.OnceFunc(func() { q.link.silence.stop(); q.nc.Close(); q.nc.RemoveStatusListener(events) })
	go q.link.watch(events)        // ends with hangUp
	q.parts.checking <- struct{}{} // a reconnect during Open has nothing to check
	err := q.prepareTries(ctx, connecting)
	for others := len(q.nc.Servers()) - 1; others > 0 && err != nil && q.elsewhere(ctx, err); others-- {
		err = q.prepareTries(ctx, connecting)
	}
	q.parts.whole = err == nil
	<-q.parts.checking
	if err == nil && q.clustered() {
		_, err = q.nc.Subscribe(leaderElected, q.elected)
	}
	if err != nil {
		err = q.unavailable(ctx, err)
		q.close(err)
		q.hangUp()
		return nil, fmt.Errorf("jetstream: preparing queue %s: %w", cfg.Name, err)
	}
	return q, nil
}

// prepareTries prepares the queue. It tries again while the server removes a stream of the same
// name, until connecting ends.
func (q *queue) prepareTries(ctx, connecting context.Context) error {
	for tries := 1; ; tries++ {
		q.parts.streams, q.parts.consumers = nil, nil
		err := q.prepare(answerByAnswer{ctx})
		if tries == prepareTries || !lacksFiles(err, codeStreamFiles) || !pause(connecting, retryPause) {
			return err
		}
	}
}

// prepareTries is how often Open tries to create the parts of a queue: a server that is removing a
// stream cannot create a stream of the same name.
const prepareTries = 5

// lacksFiles reports whether the server's error has the given code and means that one of the
// server's own files or folders is gone.
func lacksFiles(err error, code js.ErrorCode) bool {
	api, ok := errors.AsType[*js.APIError](err)
	return ok && api.ErrorCode == code && (code == codeStreamFiles || strings.Contains(api.Description, "no such file"))
}

// prepare creates streams and consumers, or adapts them to the Config. A queue that cannot be opened
// leaves nothing behind.
func (q *queue) prepare(ctx context.Context) error {
	q.parts.created = nil
	err := q.arrange(ctx)
	if !errors.Is(err, errUnfit) {
		return err
	}
	for _, name := range q.parts.created {
		if gone := q.js.DeleteStream(ctx, name); !errors.Is(gone, js.ErrStreamNotFound) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// arrange checks all existing streams before it creates anything.
func (q *queue) arrange(ctx context.Context) error {
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
		Duplicates: q.cfg.Dedupe, Replicas: max(q.cfg.Replicas, 1), AllowAtomicPublish: true,
	}
	for _, p := range priorities {
		cfg.Subjects = append(cfg.Subjects, q.names.ready(p))
	}
	return cfg
}

func (q *queue) deadConfig() js.StreamConfig {
	return js.StreamConfig{
		Name: q.names.dead, Subjects: []string{q.names.deadOf("*")}, Storage: js.FileStorage, Replicas: max(q.cfg.Replicas, 1),
		AllowDirect: true,
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
	var created bool
	for {
		q.jobs, created, err = q.ensure(ctx, cfg, func(c *js.StreamConfig) {
			c.AllowAtomicPublish = true
			c.MaxMsgs = orElse(int64(q.cfg.MaxQueued), c.MaxMsgs)
			c.MaxBytes = orElse(q.cfg.MaxBytes, c.MaxBytes)
			c.Duplicates = orElse(q.cfg.Dedupe, c.Duplicates)
			c.Replicas = orElse(q.cfg.Replicas, c.Replicas)
		})
		if !noRoom(err) || q.cfg.MaxBytes > 0 || cfg.MaxBytes/2 < leastBytes {
			break
		}
		cfg.MaxBytes /= 2 // the default exceeds the server's room
	}
	switch {
	case noRoom(err):
		return fmt.Errorf("%w: the server has no room for MaxBytes, %d MiB: set less, free its disk, or raise its limit (embedded.Config.MaxBytes, jetstream.max_file_store)", jobqueue.ErrDiskFull, cfg.MaxBytes>>20)
	case err != nil:
		return err
	case !q.jobs.CachedInfo().Config.AllowAtomicPublish: // an older server ignores unknown fields
		return fmt.Errorf("%w: the server is NATS %s: 2.12.1 or newer is needed", errUnfit, q.nc.ConnectedServerVersion())
	}
	if q.cfg.MaxBytes == 0 && cfg.MaxBytes < defaultBytes {
		q.cfg.Logger.Warn("the server has less room than a queue takes by default: set MaxBytes when it has more", "queue", q.cfg.Name, "bytes", cfg.MaxBytes)
	}
	if keys := q.remembered(); created && q.cfg.Dedupe == 0 && keys < defaultDedupe {
		q.cfg.Logger.Warn("keys are forgotten earlier than by default: set Dedupe, or the server's duplicate_window in jetstream.limits", "queue", q.cfg.Name, "after", keys)
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

// noRoom reports whether a stream is larger than the server's remaining room.
func noRoom(err error) bool {
	api, ok := errors.AsType[*js.APIError](err)
	return ok && (api.ErrorCode == codeNoStorage || api.ErrorCode == codeStorageFull || api.ErrorCode == codeStreamBytes)
}

// explained names the limit of the server that an error comes from, and where to set the limit.
func (q *queue) explained(err error) error {
	api, ok := errors.AsType[*js.APIError](err)
	if !ok {
		return err
	}
	limit := func(name, needs string) error {
		return fmt.Errorf("%w: the server's limit %s: %s (%s)", errUnfit, name, needs, api.Description)
	}
	switch {
	case api.ErrorCode == codeStreamConfig && strings.Contains(api.Description, "duplicates window"):
		return limit("duplicate_window, in jetstream.limits", fmt.Sprintf("Dedupe is %s; raise the limit, or set less", q.cfg.Dedupe))
	case api.ErrorCode == codeAckPending:
		return limit("max_ack_pending, in jetstream.limits or in the account's jetstream", fmt.Sprintf("a queue needs %d; raise it", mostPending))
	case api.ErrorCode == codeConsumers:
		return limit("max_consumers, in the account's jetstream", fmt.Sprintf("a queue needs %d in one stream; raise it", len(priorities)))
	case api.ErrorCode == codeStreams:
		return limit("max_streams, in the account's jetstream", "a queue needs four; raise it")
	case api.ErrorCode == codeBytesRequired:
		return limit("max_bytes_required, in the account's jetstream", "three of a queue's streams have no bound of bytes; set it to false")
	}
	return err
}

// ensure creates a stream, or changes the existing stream. cfg sets the fields that the queue's
// promises depend on. change sets the fields that belong to Config.
func (q *queue) ensure(ctx context.Context, cfg js.StreamConfig, change func(*js.StreamConfig)) (stream js.Stream, created bool, err error) {
	stream, err = q.js.Stream(ctx, cfg.Name)
	if errors.Is(err, js.ErrStreamNotFound) {
		if stream, created, err = q.create(ctx, cfg); created {
			q.parts.created = append(q.parts.created, cfg.Name)
		}
	}
	err = q.explained(err)
	if err != nil || created {
		return stream, created, err
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
	err = q.explained(err)
	if api, ok := errors.AsType[*js.APIError](err); ok && api.Code < 500 && len(changes) > 0 && !noRoom(err) {
		return nil, false, misfit(cfg.Name, strings.Join(changes, ", ")+": "+api.Description)
	}
	if err == nil && len(changes) > 0 {
		q.cfg.Logger.Warn(otherPolicy, "queue", q.cfg.Name, "stream", cfg.Name, "now", strings.Join(changes, ", "))
	}
	return changed, false, err
}

func (q *queue) consumer(ctx context.Context, stream js.Stream, name, subject string, pending int) (js.Consumer, error) {
	cfg := js.ConsumerConfig{
		Durable: name, AckPolicy: js.AckExplicitPolicy, MaxDeliver: -1, MaxAckPending: pending, MaxWaiting: mostInFlight,
		FilterSubject: subject, AckWait: orElse(q.cfg.AckWait, defaultAckWait),
	}
	in := stream.CachedInfo().Config.Name
	if existing, err := stream.Consumer(ctx, name); err == nil {
		have := existing.CachedInfo().Config
		if q.cfg.AckWait == 0 {
			cfg.AckWait = have.AckWait
		}
		if err := q.explained(q.restoreConsumer(ctx, consumerOf{in, cfg}, have)); err != nil {
			return nil, err
		}
	}
	consumer, err := q.makeConsumer(ctx, in, cfg)
	err = q.explained(err)
	if api, ok := errors.AsType[*js.APIError](err); ok && (api.Code < 500 || strings.Contains(api.Description, "can not")) { // 500 is also the code for a fixed field
		return nil, fmt.Errorf("%w: consumer %s of stream %s has another policy, and cannot be changed (%s): delete this consumer, it is made again", errUnfit, name, in, api.Description)
	}
	if err != nil {
		return nil, err
	}
	q.parts.keepConsumer(in, consumer)
	if most := consumer.CachedInfo().Config.MaxRequestBatch; most > 0 {
		q.pulls = min(orElse(q.pulls, most), most)
	}
	return consumer, nil
}

// makeConsumer creates or updates a consumer. A server that removes a consumer also removes the
// files of a consumer created at the same moment under the same name. The server reports the
// missing files when that consumer is updated. The consumer would be gone after a server restart,
// so makeConsumer creates it again.
func (q *queue) makeConsumer(ctx context.Context, stream string, cfg js.ConsumerConfig) (js.Consumer, error) {
	consumer, err := q.js.CreateOrUpdateConsumer(ctx, stream, cfg)
	if !lacksFiles(err, codeConsumerFiles) {
		return consumer, err
	}
	q.link.doubt()
	if err := q.js.DeleteConsumer(ctx, stream, cfg.Durable); err != nil && !errors.Is(err, js.ErrConsumerNotFound) {
		return nil, err
	}
	return q.js.CreateOrUpdateConsumer(ctx, stream, cfg)
}

// prepareSlots creates one slot for each handler that may run.
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
	if q.local != nil {
		if err := q.local.OnFirstOpen(q.cfg.Name, func() error { return freeSlots(ctx, stream) }); err != nil {
			return err
		}
	}
	if q.slots, err = q.consumer(ctx, stream, slotConsumer, q.names.slot("*"), mostInFlight); err != nil {
		return err
	}
	_, err = q.fillSlots(ctx, stream)
	return err
}

// freeSlots takes the slots from processes that have ended. Otherwise the engine waits for AckWait
// before it takes slots from a killed process, and no job would run until then.
func freeSlots(ctx context.Context, stream js.Stream) error {
	if err := stream.DeleteConsumer(ctx, slotConsumer); !errors.Is(err, js.ErrConsumerNotFound) {
		return err
	}
	return nil
}

// orElse is cmp.Or for a nonnegative value and a default of the same type.
func orElse[T int | int64 | time.Duration](value, fallback T) T {
	if value > 0 {
		return value
	}
	return fallback
}
