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
	codeStoreFailed    = 10077 // also: more messages or bytes than allowed
	codeBatchDuplicate = 10201
	codeNoStorage      = 10047 // asking for more than the server or the account has
	codeStorageFull    = 10023 // the server has used all that it may
	codeAccountFull    = 10002 // the account has
	codeWrongLast      = 10071 // an expected last sequence was another
	codeWrongLastConst = 10164
	codeConsumerFiles  = 10012 // a consumer cannot be made or changed,
	codeStreamFiles    = 10049 // or a stream
)

// retryPause is between tries while the engine is away.
const retryPause = 50 * time.Millisecond

// pubAck is what the server answers to a message or to a batch.
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

// send stores a batch, all of it or nothing: a message alone as it is, several as an
// atomic batch of the server, which ends with the one that asks for the answer.
func (q *queue) send(batch []*entry) (outcome, error) {
	if what, err := q.store(batch); err != nil {
		return what, err
	}
	ctx, cancel := context.WithDeadline(q.closing, batch[0].deadline)
	defer cancel()
	ctx, leave := q.link.during(ctx)
	defer leave()
	for {
		what, ack, err := q.publish(ctx, batch)
		if what != repeated || len(batch) > 1 || ack.Sequence == 0 {
			return what, err
		}
		again, err := q.hasForgotten(ctx, ack.Sequence)
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
	id := newKey()
	for i, e := range batch {
		if len(batch) == 1 {
			e.msg.Header.Del(headerBatch)
			e.msg.Header.Del(headerBatchSeq)
			e.msg.Header.Del(headerBatchCommit)
			break
		}
		e.msg.Header.Set(headerBatch, id)
		e.msg.Header.Set(headerBatchSeq, strconv.Itoa(i+1))
		if i < len(batch)-1 {
			e.msg.Header.Del(headerBatchCommit)
			if err := q.nc.PublishMsg(e.msg); err != nil {
				return uncertain, ack, q.unavailable(ctx, err)
			}
		}
	}
	last := batch[len(batch)-1].msg
	if len(batch) > 1 {
		last.Header.Set(headerBatchCommit, "1")
	}
	reply, err := q.nc.RequestMsgWithContext(ctx, last)
	if err != nil {
		if errors.Is(err, nats.ErrMaxPayload) {
			return refused, ack, fmt.Errorf("%w: %w", jobqueue.ErrTooLarge, err)
		}
		if missing(err) {
			q.mendSoon()
		}
		return uncertain, ack, q.unavailable(ctx, err)
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return uncertain, ack, q.unavailable(ctx, fmt.Errorf("unexpected answer %.80q", reply.Data))
	}
	what, err = q.judge(ctx, ack, batch)
	return what, ack, err
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
	case ack.Error.ErrCode == codeStoreFailed && isFull(ack.Error.Description):
		return full, q.advice.rejection(q.removed)
	case ack.Error.ErrCode == codeStorageFull || ack.Error.ErrCode == codeNoStorage || ack.Error.ErrCode == codeAccountFull:
		return full, q.diskFull(batch, errors.New("the server has stored as much as it may: make room, or raise its limit (embedded.Config.MaxBytes, jetstream.max_file_store)"))
	case ack.Error.Code == 400 && ack.Error.ErrCode != codeBatchIncomplete:
		return refused, fmt.Errorf("jetstream: the engine refuses the job: %s", ack.Error.Description)
	}
	return uncertain, q.unavailable(ctx, errors.New(ack.Error.Description))
}

const codeBatchIncomplete = 10176

// isFull tells a queue that is full from a store that failed; both have one code.
func isFull(description string) bool {
	return description == "maximum messages exceeded" || description == "maximum bytes exceeded"
}

// store asks a server in this process whether it can store anything at all. One whose
// disk failed does not answer.
func (q *queue) store(batch []*entry) (outcome, error) {
	s, ok := q.cfg.Server.(interface {
		Room() error
		Failed() error
	})
	if !ok {
		return stored, nil
	}
	if err := s.Room(); err != nil {
		return full, q.diskFull(batch, err)
	}
	if err := s.Failed(); err != nil {
		return refused, fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, err)
	}
	return stored, nil
}

// diskFull is the error of jobs for which there is no room: they are rejected, but for
// those of which an earlier try was not answered.
func (q *queue) diskFull(batch []*entry, why error) error {
	err := fmt.Errorf("%w: %w", jobqueue.ErrDiskFull, why)
	for _, e := range batch {
		if e.unanswered {
			return fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%w (%w)", err, q.advice.rejection(q.removed))
}

// unavailable says of an error that it is the engine's, unless it is the end of ctx by the
// caller.
func (q *queue) unavailable(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, jobqueue.ErrUnavailable) || errors.Is(err, jobqueue.ErrDiskFull) || errors.Is(err, errUnfit):
		return err
	case q.closing.Err() != nil:
		return fmt.Errorf("%w: the queue was closed", jobqueue.ErrUnavailable)
	case errors.Is(context.Cause(ctx), errLink):
		return fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, errLink)
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		// That was ours: the caller's context may have long to go, and an HTTP service
		// would answer that the request's has ended.
		return fmt.Errorf("%w: it did not answer in time", jobqueue.ErrUnavailable)
	}
	if api, ok := errors.AsType[*js.APIError](err); ok && api.Code < 500 {
		return err // it answers
	}
	if errors.Is(err, context.DeadlineExceeded) && q.nc.IsConnected() {
		err = fmt.Errorf("connected, and no answer within %s: is the server busy, or its disk full? Its log says: %w", q.cfg.Wait, err)
	}
	return fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, err)
}

// rest waits between two tries of a commit.
func (q *queue) rest() bool { return pause(q.closing, retryPause) }

// pause waits, and reports whether ctx is still alive.
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

// advice says when a full queue will have room: from how fast it is emptied.
type advice struct {
	mu      sync.Mutex
	looked  time.Time
	removed uint64
	refused int // since it was looked
	wait    time.Duration
}

const (
	lookEvery   = 250 * time.Millisecond
	firstAdvice = time.Second
	leastAdvice = 100 * time.Millisecond
	mostAdvice  = 30 * time.Second
)

// rejection returns what Enqueue answers. It asks how many jobs have been removed since
// the queue exists, rarely.
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
	return &spillway.Rejection{Reason: spillway.QueueFull, RetryAfter: wait + rand.N(wait/4+1)}
}

// estimate returns how long it takes to make room for those who were refused.
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

// removed returns how many jobs have left the stream since it exists.
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
