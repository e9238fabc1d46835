package jetstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// For Config.Dedupe the server remembers a key as a message ID, even after the message is removed.
// So the queue records the removed jobs whose keys are forgotten. If the server knows a key from
// such a job, a new job with the key gets another message ID. All processes derive the same ID.

// span is a range of removed jobs, by message sequence number, and the time of their removal.
type span struct {
	First, Last uint64
	At          time.Time
}

const (
	spansFor   = time.Hour // how long spans are kept beyond the deduplication window
	mostSpans  = 5_000
	spanSize   = 200    // upper bound of a span's size in a message, in bytes
	forgetting = "keys" // the record's subject token, in place of a job's mark
)

// idAgain returns the message ID of a job with a known key; was is the number of the removed job
// with the key.
func idAgain(id string, was uint64) string { return id + " again " + strconv.FormatUint(was, 10) }

// markOf parses the result of mark.
func markOf(text string) (number uint64, at time.Time, ok bool) {
	first, second, _ := strings.Cut(text, "-")
	number, err := strconv.ParseUint(first, 10, 64)
	nanos, wrong := strconv.ParseInt(second, 10, 64)
	return number, time.Unix(0, nanos), err == nil && wrong == nil
}

// forgotten returns the jobs whose keys are forgotten, and the version of the record.
func (q *queue) forgotten(ctx context.Context) (spans []span, version uint64, err error) {
	var msg *js.RawStreamMsg
	err = q.asked(ctx, func(ctx context.Context) (err error) {
		msg, err = q.returns.GetLastMsgForSubject(ctx, q.names.returnsOf(forgetting))
		return err
	})
	if errors.Is(err, js.ErrMsgNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(msg.Data, &spans); err != nil { // somebody else has written it
		q.cfg.Logger.Warn("the record of forgotten keys cannot be read, and counts as empty", "queue", q.cfg.Name, "error", err)
		spans = nil
	}
	return spans, msg.Sequence, nil
}

// hasForgotten reports whether the key of a job is forgotten. It ends with ctx, at the deadline, and
// with the queue.
func (q *queue) hasForgotten(ctx context.Context, job uint64, deadline time.Time) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(q.closing, cancel)()
	spans, _, err := q.forgotten(ctx)
	return slices.ContainsFunc(spans, func(s span) bool { return s.First <= job && job <= s.Last }), err
}

// remembered returns how long the server remembers a key.
func (q *queue) remembered() time.Duration { return q.jobs.CachedInfo().Config.Duplicates }

// forget records that the keys of jobs are forgotten.
func (q *queue) forget(ctx context.Context, more []span) error {
	if len(more) == 0 {
		return nil
	}
	for {
		spans, version, err := q.forgotten(ctx)
		if err != nil {
			return err
		}
		most := min(mostSpans, int(q.nc.MaxPayload())/spanSize)
		text, err := json.Marshal(join(append(spans, more...), q.clock.now().Add(-spansFor-q.remembered()), most))
		if err != nil {
			return err
		}
		err = q.asked(ctx, func(ctx context.Context) error {
			_, err := q.js.Publish(ctx, q.names.returnsOf(forgetting), text, js.WithExpectLastSequencePerSubject(version))
			return err
		})
		if !wrongLast(err) { // otherwise another process has changed the record meanwhile
			return err
		}
	}
}

// wrongLast reports whether the server refused a message because the expected last sequence
// differs.
func wrongLast(err error) bool {
	api, ok := errors.AsType[*js.APIError](err)
	return ok && (api.ErrorCode == codeWrongLast || api.ErrorCode == codeWrongLastConst)
}

// join sorts the spans, drops the spans before since, and merges neighbours. If more than most
// spans remain, join keeps the spans of the newest jobs.
func join(spans []span, since time.Time, most int) []span {
	spans = slices.DeleteFunc(spans, func(s span) bool { return s.At.Before(since) })
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.First, b.First) })
	var all []span
	for _, s := range spans {
		if n := len(all) - 1; n >= 0 && s.First <= all[n].Last+1 {
			all[n].Last = max(all[n].Last, s.Last)
			if s.At.After(all[n].At) {
				all[n].At = s.At
			}
			continue
		}
		all = append(all, s)
	}
	return all[max(0, len(all)-most):]
}
