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

// The server knows a key for Config.Dedupe as the ID of the message that had it, also when that
// is gone. So the queue writes down whose keys Purge has forgotten, and a key that the server
// knows from one of those is stored under another ID: the same one for everybody.

// span is jobs that were removed, by the numbers of their messages, and when.
type span struct {
	First, Last uint64
	At          time.Time
}

const (
	spansFor   = time.Hour // longer than any time of memory is worth a look
	mostSpans  = 5_000
	spanSize   = 200    // bytes of a message, and more
	forgetting = "keys" // the subject, where others have the mark of a job
)

// idAgain is the ID of a job whose key the server knows from job number was, which is gone.
func idAgain(id string, was uint64) string { return id + " again " + strconv.FormatUint(was, 10) }

// markOf is the opposite of mark.
func markOf(text string) (number uint64, at time.Time, ok bool) {
	first, second, _ := strings.Cut(text, "-")
	number, err := strconv.ParseUint(first, 10, 64)
	nanos, wrong := strconv.ParseInt(second, 10, 64)
	return number, time.Unix(0, nanos), err == nil && wrong == nil
}

// forgotten returns the jobs whose keys are forgotten, and the version of that record.
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
	return spans, msg.Sequence, json.Unmarshal(msg.Data, &spans)
}

// hasForgotten reports whether the key of a job is forgotten.
func (q *queue) hasForgotten(ctx context.Context, job uint64) (bool, error) {
	spans, _, err := q.forgotten(ctx)
	return slices.ContainsFunc(spans, func(s span) bool { return s.First <= job && job <= s.Last }), err
}

// remembered is for how long the server knows a key.
func (q *queue) remembered() time.Duration { return q.jobs.CachedInfo().Config.Duplicates }

// forget has the keys of jobs forgotten.
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
		if !wrongLast(err) { // otherwise another process has written meanwhile
			return err
		}
	}
}

// wrongLast tells a message that was to be the first, or to follow another, and is not.
func wrongLast(err error) bool {
	api, ok := errors.AsType[*js.APIError](err)
	return ok && (api.ErrorCode == codeWrongLast || api.ErrorCode == codeWrongLastConst)
}

// join returns the spans in order, without those before since, neighbours as one. Of more than
// most, those of the newest jobs are left.
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
