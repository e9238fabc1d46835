package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
)

// parts are the streams and consumers of a queue, as this process found or created them. Somebody
// may delete a part with a tool of the engine while the queue is open: jobs would be acknowledged
// and never run.
type parts struct {
	checking  chan struct{} // held by the goroutine that checks the parts; full while it does
	soon      atomic.Bool   // a check is scheduled
	streams   []js.StreamConfig
	consumers []consumerOf
	created   []string  // the streams that prepare has created
	whole     bool      // all parts are known
	calm      bool      // the last check found nothing missing, or could not check
	looked    time.Time // when the last check ended
	trouble   string    // error of the last check
	logged    string    // the trouble that was logged
}

type consumerOf struct {
	stream string
	cfg    js.ConsumerConfig
}

// lookAgain is the pause between two checks of the parts when nothing was missing. An engine in
// trouble answers like an engine that lacks a part.
const lookAgain = time.Second

func (p *parts) keepStream(s js.Stream) { p.streams = append(p.streams, s.CachedInfo().Config) }

func (p *parts) keepConsumer(stream string, c js.Consumer) {
	p.consumers = append(p.consumers, consumerOf{stream, c.CachedInfo().Config})
}

// missing reports whether an error may come from a part that is missing.
func missing(err error) bool {
	for _, sign := range []error{nats.ErrNoResponders, js.ErrNoStreamResponse, js.ErrJetStreamNotEnabled, js.ErrStreamNotFound, js.ErrConsumerNotFound, js.ErrConsumerDoesNotExist} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// notFound reports whether the engine has answered that a part does not exist.
func notFound(err error) bool {
	return errors.Is(err, js.ErrStreamNotFound) || errors.Is(err, js.ErrConsumerNotFound)
}

// asked makes a request to the engine through ask. The context of ask ends with parent, after
// Config.Wait, and with the connection. If a part of the queue was missing and exists again, or
// another server leads a part, asked repeats the request.
func (q *queue) asked(parent context.Context, ask func(context.Context) error) error {
	for tries := 1; ; tries++ {
		ctx, cancel := q.asking(parent)
		q.link.silence.begin()
		err := ask(ctx)
		q.link.silence.end(endOf(parent, ctx, err))
		cause := context.Cause(ctx)
		again := errors.Is(cause, errAnew) || errors.Is(cause, errLeader)
		if err != nil && errors.Is(cause, errLink) {
			err = fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, errLink)
		}
		cancel()
		if err != nil && again && parent.Err() == nil {
			continue
		}
		if err == nil || tries > 1 || !missing(err) || !q.mend(parent, notFound(err)) {
			return err
		}
	}
}

// mend recreates missing parts of the queue, and reports whether all parts exist now. After a check
// that found nothing missing, the next check is lookAgain later, unless sure is set.
func (q *queue) mend(parent context.Context, sure bool) (whole bool) {
	p := &q.parts
	select {
	case p.checking <- struct{}{}:
	case <-parent.Done():
		return false
	case <-q.closing.Done():
		return false
	}
	defer func() { <-p.checking }()
	if !p.whole || p.calm && !sure && time.Since(p.looked) < lookAgain {
		return false
	}
	ctx, leave := q.link.connected(parent)
	defer leave()
	defer context.AfterFunc(q.closing, leave)()
	names, created, err := q.remake(answerByAnswer{ctx})
	p.calm, p.looked = len(names) == 0, time.Now()
	if len(names) > 0 {
		q.cfg.Logger.Warn("the job engine has lost parts of the queue: they are made again, without what was in them",
			"queue", q.cfg.Name, "parts", strings.Join(names, ", "))
		q.link.renew(errAnew)
	}
	if len(created) > 0 && err == nil {
		err = q.confirm(parent, created)
	}
	text := ""
	if err != nil && parent.Err() == nil && q.closing.Err() == nil && !errors.Is(context.Cause(ctx), errLink) {
		// A server that is removing a stream cannot create the stream again at the same moment.
		if text = err.Error(); text == p.trouble && text != p.logged {
			q.cfg.Logger.Error("parts of the queue may be missing at the job engine, and cannot be made again", "queue", q.cfg.Name, "error", err)
			p.logged = text
		}
	}
	if p.trouble = text; text == "" {
		p.logged = ""
	}
	return err == nil
}

// mendSoon checks the parts in the background, so that the caller need not wait for an engine that
// may be in trouble. Close waits for the check.
func (q *queue) mendSoon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && q.parts.soon.CompareAndSwap(false, true) {
		q.stragglers.Go(func() {
			q.mend(q.closing, false)
			q.parts.soon.Store(false)
		})
	}
}

// removed is the time after which a server has removed the files of a deleted stream or consumer.
const removed = 100 * time.Millisecond

// confirm ensures that newly created consumers have files: see makeConsumer.
func (q *queue) confirm(parent context.Context, created []consumerOf) error {
	ctx, leave := q.link.connected(parent)
	defer leave()
	defer context.AfterFunc(q.closing, leave)()
	pause(ctx, removed)
	for _, c := range created {
		if _, err := q.makeConsumer(answerByAnswer{ctx}, c.stream, c.cfg); err != nil {
			return err
		}
	}
	return nil
}

// remake recreates missing parts. It returns their names, and the consumers among them.
func (q *queue) remake(ctx context.Context) (names []string, created []consumerOf, err error) {
	anew := map[string]bool{}
	for _, cfg := range q.parts.streams {
		stream, err := q.js.Stream(ctx, cfg.Name)
		lost := errors.Is(err, js.ErrStreamNotFound)
		if lost {
			q.link.doubt()
			// A server answers so while it removes the files of the stream, and would remove those of the next one.
			pause(ctx, removed)
			stream, lost, err = q.create(ctx, cfg)
		}
		if err != nil {
			return names, created, err
		}
		if !lost {
			if stream, err = q.restoreStream(ctx, stream, cfg); err != nil {
				return names, created, err
			}
		}
		if lost {
			names, anew[cfg.Name] = append(names, "stream "+cfg.Name), true
		}
		if cfg.Name == q.names.slots {
			filled, err := q.fillSlots(ctx, stream)
			if err != nil {
				return names, created, err
			}
			if filled && !lost {
				names = append(names, "what was in stream "+cfg.Name)
			}
		}
	}
	for _, c := range q.parts.consumers {
		there, err := q.js.Consumer(ctx, c.stream, c.cfg.Name)
		if err == nil {
			err = q.restoreConsumer(ctx, c, there.CachedInfo().Config)
		}
		if !errors.Is(err, js.ErrConsumerNotFound) {
			if err != nil {
				return names, created, err
			}
			continue
		}
		q.link.doubt()
		if _, err := q.makeConsumer(ctx, c.stream, c.cfg); err != nil {
			return names, created, err
		}
		created = append(created, c)
		if !anew[c.stream] {
			names = append(names, "consumer "+c.cfg.Name+" of "+c.stream)
		}
	}
	return names, created, nil
}

// restoreStream gives a stream its policy again, which somebody may have changed by hand.
func (q *queue) restoreStream(ctx context.Context, stream js.Stream, cfg js.StreamConfig) (js.Stream, error) {
	wanted, changes, err := adapt(stream.CachedInfo().Config, cfg)
	if err != nil || len(changes) == 0 {
		return stream, err
	}
	if stream, err = q.js.UpdateStream(ctx, wanted); err == nil {
		q.cfg.Logger.Warn(otherPolicy, "queue", q.cfg.Name, "stream", cfg.Name, "now", strings.Join(changes, ", "))
	}
	return stream, err
}

// restoreConsumer is restoreStream for a consumer. A pause is left to whoever made the pause, and said.
func (q *queue) restoreConsumer(ctx context.Context, c consumerOf, have js.ConsumerConfig) error {
	if until := have.PauseUntil; until != nil && until.After(time.Now()) {
		q.cfg.Logger.Warn("somebody has paused a consumer of the queue: its jobs do not run until it is resumed",
			"queue", q.cfg.Name, "stream", c.stream, "consumer", have.Durable, "until", until)
	}
	fit, changes, anew := strays(have, c.cfg)
	if len(changes) == 0 {
		return nil
	}
	if anew {
		q.link.doubt()
		if err := q.js.DeleteConsumer(ctx, c.stream, have.Durable); err != nil && !errors.Is(err, js.ErrConsumerNotFound) {
			return err
		}
	}
	_, err := q.makeConsumer(ctx, c.stream, fit)
	if err == nil {
		q.cfg.Logger.Warn(otherPolicy, "queue", q.cfg.Name, "stream", c.stream, "consumer", have.Durable, "now", strings.Join(changes, ", "))
	}
	return err
}

const otherPolicy = "a part of the queue had another policy, and was changed"

// inspect checks the parts every inspectEvery while Work runs: what somebody has changed by hand may
// cause no error. It returns when ctx ends.
func (q *queue) inspect(ctx context.Context) {
	for pause(ctx, inspectEvery) {
		q.mendSoon()
	}
}

const inspectEvery = time.Minute

// create creates a stream, unless another process is faster. A recreated stream starts above all
// sequence numbers of the old stream: a handler's answer for an old job must not end a job of the
// new stream. The first number is the Unix time in microseconds, one microsecond per message.
func (q *queue) create(ctx context.Context, cfg js.StreamConfig) (stream js.Stream, created bool, err error) {
	if cfg.Retention == js.WorkQueuePolicy {
		cfg.FirstSeq = uint64(time.Now().UnixMicro())
	}
	stream, err = q.js.CreateStream(ctx, cfg)
	if errors.Is(err, js.ErrStreamNameAlreadyInUse) {
		stream, err = q.js.Stream(ctx, cfg.Name)
		return stream, false, err
	}
	return stream, err == nil, err
}

// fillSlots ensures that the slots match the number in the stream's metadata, and reports whether a
// slot was missing.
func (q *queue) fillSlots(ctx context.Context, stream js.Stream) (filled bool, err error) {
	info, err := stream.Info(ctx, js.WithSubjectFilter(q.names.slot("*")))
	if err != nil {
		return false, err
	}
	count := slotsIn(info.Config)
	if count == 0 { // somebody has changed the stream's metadata
		count, filled = q.inFlight, true
		if stream, err = q.js.UpdateStream(ctx, withSlots(info.Config, count)); err != nil {
			return false, err
		}
	}
	there := info.State.Subjects
	for subject := range there {
		number := strings.TrimPrefix(subject, q.names.slot(""))
		if i, err := strconv.Atoi(number); err == nil && 0 <= i && i < count && strconv.Itoa(i) == number {
			continue
		}
		if err := stream.Purge(ctx, js.WithPurgeSubject(subject)); err != nil {
			return filled, err
		}
	}
	for i := range count {
		subject := q.names.slot(strconv.Itoa(i))
		if there[subject] > 0 {
			continue
		}
		_, err := q.js.Publish(ctx, subject, nil)
		if api, ok := errors.AsType[*js.APIError](err); err != nil && !(ok && api.ErrorCode == codeStoreFailed) {
			return filled, err // a refusal as full is fine: another process has created the slot
		}
		filled = true
	}
	return filled, nil
}

// slotsKey is the metadata key of the number of slots.
const slotsKey = "slots"

// slotsIn returns the configured number of slots. It returns zero if the number is missing or
// invalid.
func slotsIn(cfg js.StreamConfig) int {
	if n, err := strconv.Atoi(cfg.Metadata[slotsKey]); err == nil && 0 < n && n <= mostInFlight {
		return n
	}
	return 0
}

// withSlots returns the configuration of the stream of slots with another number of slots.
func withSlots(cfg js.StreamConfig, n int) js.StreamConfig {
	metadata := maps.Clone(cfg.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[slotsKey] = strconv.Itoa(n)
	cfg.Metadata = metadata
	return cfg
}

// errorFor returns the error that a caller gets for an engine's error. It is the error of the caller's
// context if that context has ended, and otherwise the engine's error, marked as unavailable.
func (q *queue) errorFor(caller context.Context, err error) error {
	if err != nil && caller.Err() != nil {
		return caller.Err()
	}
	return q.unavailable(caller, err)
}
