package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

// Error codes of the server.
const (
	codeStoreFailed    = 10077 // also: message or byte limit exceeded; the description tells
	codeBatchTooMany   = 10199
	codeBatchDuplicate = 10201
	codeNoStorage      = 10047 // request exceeds the room of the server or the account
	codeStorageFull    = 10023 // the server has used its whole limit
	codeAccountFull    = 10002 // the account has used its whole limit
	codeWrongLast      = 10071 // an expected last sequence did not match
	codeWrongLastConst = 10164
	codeStreamConfig   = 10052 // also: a window of duplicates above the server's limit
	codeAckPending     = 10121
	codeConsumers      = 10026
	codeStreams        = 10027
	codeBytesRequired  = 10113
	codeStreamBytes    = 10122
	codeConsumerFiles  = 10012 // a consumer cannot be created or changed
	codeStreamFiles    = 10049 // a stream cannot be created or changed
)

// retryPause is the pause between tries while the engine is away.
const retryPause = 50 * time.Millisecond

// pubAck is the server's answer to a message or to a batch.
type pubAck struct {
	Sequence  uint64 `json:"seq"`
	Duplicate bool   `json:"duplicate"`
	Count     int    `json:"count"`
	Error     *struct {
		Code        int    `json:"code"`
		ErrCode     int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

// send stores a whole batch or nothing. A single message is sent as it is. Several messages form an
// atomic batch of the server, whose last message requests the answer.
func (q *queue) send(ctx context.Context, batch []*entry) (outcome, error) {
	if what, err := q.store(batch); err != nil {
		return what, err
	}
	for {
		what, ack, err := q.publish(ctx, batch)
		if what != repeated || len(batch) > 1 || ack.Sequence == 0 {
			return what, err
		}
		again, err := q.hasForgotten(ctx, ack.Sequence, batch[0].deadline)
		if err != nil {
			return uncertain, q.unavailable(ctx, err)
		}
		if !again {
			return repeated, nil
		}
		batch[0].msg.Header.Set(headerMsgID, idAgain(batch[0].id, ack.Sequence))
	}
}

func (q *queue) publish(ctx context.Context, batch []*entry) (what outcome, ack pubAck, err error) {
	last := batch[len(batch)-1].msg
	if len(batch) > 1 {
		id := newKey()
		for i, e := range batch {
			e.batched = true
			e.msg.Header.Set(headerBatch, id)
			e.msg.Header.Set(headerBatchSeq, strconv.Itoa(i+1))
			if e.msg == last {
				e.msg.Header.Set(headerBatchCommit, "1")
				break
			}
			e.msg.Header.Del(headerBatchCommit)
			e.msg.Reply = ""
			if err := q.nc.PublishMsg(e.msg); err != nil {
				what, err := q.unsent(ctx, err)
				return what, ack, err
			}
		}
	} else if batch[0].batched {
		batch[0].batched = false
		last.Header.Del(headerBatch)
		last.Header.Del(headerBatchSeq)
		last.Header.Del(headerBatchCommit)
	}
	q.link.silence.begin()
	defer func() { q.link.silence.end(sent(ctx, what, err)) }()
	reply, err := q.ask(ctx, last, batch[0].deadline)
	if err != nil {
		if missing(err) {
			q.mendSoon()
		}
		what, err := q.unsent(ctx, err)
		return what, ack, err
	}
	if sequence, ok := storedAs(q.names.jobs, reply.Data); ok && len(batch) == 1 {
		return stored, pubAck{Sequence: sequence}, nil
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return uncertain, ack, q.unavailable(ctx, fmt.Errorf("unexpected answer %.80q", reply.Data))
	}
	what, err = q.judge(ctx, ack, batch)
	return what, ack, err
}

// unsent returns what becomes of a batch with a message that was not sent or not answered.
func (q *queue) unsent(ctx context.Context, err error) (outcome, error) {
	if errors.Is(err, nats.ErrMaxPayload) {
		return refused, fmt.Errorf("%w: %w", jobqueue.ErrTooLarge, err)
	}
	return uncertain, q.unavailable(ctx, err)
}

func (q *queue) judge(ctx context.Context, ack pubAck, batch []*entry) (outcome, error) {
	sent := len(batch)
	switch {
	case ack.Error == nil && ack.Duplicate:
		return repeated, nil
	case ack.Error == nil && ack.Sequence > 0 && (sent == 1 || ack.Count == sent):
		return stored, nil
	case ack.Error == nil:
		return uncertain, q.unavailable(ctx, errors.New("the answer does not fit the batch"))
	case ack.Error.ErrCode == codeBatchDuplicate:
		return repeated, nil
	case ack.Error.ErrCode == codeBatchTooMany:
		return tooMany, q.unavailable(ctx, errors.New(ack.Error.Description))
	case ack.Error.ErrCode == codeStoreFailed && ack.Error.Description == "maximum messages exceeded":
		return full, q.advice.rejection(q.removed)
	case ack.Error.ErrCode == codeStoreFailed && ack.Error.Description == "maximum bytes exceeded":
		return tight, q.advice.rejection(q.removed)
	case ack.Error.ErrCode == codeStorageFull || ack.Error.ErrCode == codeNoStorage || ack.Error.ErrCode == codeAccountFull:
		return tight, q.diskFull(batch, errors.New("the server has stored as much as it may: make room, or raise its limit (embedded.Config.MaxBytes, jetstream.max_file_store)"))
	case ack.Error.Code == 400:
		return refused, fmt.Errorf("jetstream: the engine refuses the job: %s", ack.Error.Description)
	}
	return uncertain, q.unavailable(ctx, errors.New(ack.Error.Description))
}

// store asks a server in this process whether it can store jobs at all. A server whose disk failed
// does not answer requests.
func (q *queue) store(batch []*entry) (outcome, error) {
	if q.local == nil {
		return stored, nil
	}
	if err := q.local.Room(); err != nil {
		return full, q.diskFull(batch, err)
	}
	if err := q.local.Failed(); err != nil {
		return refused, fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, err)
	}
	return stored, nil
}

// diskFull returns the error of a batch for which there is no room. The batch is rejected, unless
// an earlier try of one of its entries was not answered: then the batch is unavailable.
func (q *queue) diskFull(batch []*entry, why error) error {
	err := fmt.Errorf("%w: %w", jobqueue.ErrDiskFull, why)
	for _, e := range batch {
		if e.unanswered {
			return fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%w (%w)", err, q.advice.rejection(q.removed))
}

// unavailable marks an error as the engine's, unless the caller has cancelled ctx.
func (q *queue) unavailable(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, jobqueue.ErrUnavailable) || errors.Is(err, jobqueue.ErrDiskFull) || errors.Is(err, errUnfit):
		return err
	case q.failed() != nil:
		return q.failed()
	case q.closing.Err() != nil:
		return fmt.Errorf("%w: the queue was closed", jobqueue.ErrUnavailable)
	case errors.Is(context.Cause(ctx), errLink):
		return fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, errLink)
	case errors.Is(err, context.Canceled):
		return err
	case q.link.refusal() != nil:
		return fmt.Errorf("%w: the server refuses the login, and is tried again: %w", jobqueue.ErrUnavailable, q.link.refusal())
	case q.link.silence.lasts() && !isAnswer(err):
		return fmt.Errorf("%w: connected, and no server has answered: those of the URL and of their cluster are tried in turn (%v)", jobqueue.ErrUnavailable, err)
	case errors.Is(err, context.DeadlineExceeded):
		// The deadline was the queue's own: the caller's context may have time left. An HTTP
		// service would otherwise report that the request's deadline has passed.
		if q.nc.IsConnected() {
			return fmt.Errorf("%w: connected, and no answer within %s: is the server busy, or was its disk full? Its log says. After a full disk a server by URL needs a restart", jobqueue.ErrUnavailable, q.cfg.Wait)
		}
		return fmt.Errorf("%w: it did not answer in time", jobqueue.ErrUnavailable)
	}
	if api, ok := errors.AsType[*js.APIError](err); ok && api.Code < 500 {
		return err // the engine answers
	}
	return fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, err)
}

// rest waits between two tries of a commit.
func (q *queue) rest(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.closing, cancel)()
	return pause(ctx, retryPause)
}

// pause waits for d, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// advice estimates when a full queue will have room, from the rate at which jobs leave.
type advice struct {
	mu      sync.Mutex
	looked  time.Time
	removed uint64
	refused int // since the last look
	wait    time.Duration
}

const (
	lookEvery   = 250 * time.Millisecond
	firstAdvice = time.Second
	leastAdvice = 100 * time.Millisecond
	mostAdvice  = 30 * time.Second
)

// rejection returns Enqueue's error. At most once per lookEvery it asks how many jobs have left
// since the queue was created.
func (a *advice) rejection(removed func() (uint64, bool)) *spillway.Rejection {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused++
	now := time.Now()
	if past := now.Sub(a.looked); past >= lookEvery {
		if n, ok := removed(); ok {
			a.wait = estimate(a.looked.IsZero(), n-a.removed, a.refused, past)
			a.looked, a.removed, a.refused = now, n, 0
		}
	}
	wait := max(a.wait, leastAdvice)
	return &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: wait + rand.N(wait/4+1)}
}

// estimate returns how long it takes to make room for the refused jobs.
func estimate(first bool, removed uint64, refused int, past time.Duration) time.Duration {
	switch {
	case first:
		return firstAdvice
	case removed == 0:
		return min(2*max(past, firstAdvice), mostAdvice)
	}
	wait := float64(past) * float64(refused) / float64(removed)
	return time.Duration(math.Min(math.Max(wait, float64(leastAdvice)), float64(mostAdvice)))
}

// removed returns how many jobs have left the stream since it was created.
func (q *queue) removed() (uint64, bool) {
	ctx, cancel := q.asking(q.closing)
	defer cancel()
	info, err := q.js.Stream(ctx, q.names.jobs)
	if err != nil {
		return 0, false
	}
	state := info.CachedInfo().State
	return state.LastSeq - state.Msgs, true
}
