package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

// FuzzUsualAnswers compares storedAs with encoding/json.
func FuzzUsualAnswers(f *testing.F) {
	for _, answer := range []string{
		`{"stream":"a","seq":17}`, `{"stream":"a","domain":"hub","seq":18446744073709551615}`,
		`{"stream":"a","seq":17,"duplicate":true}`, `{"stream":"a","seq":17,"batch":"b","count":2}`,
		`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"a","seq":0}`,
		`{"stream":"a","error":{"code":503},"seq":4}`, `{"stream":"a","duplicate":true,"seq":4}`,
		`{"stream":"a","count":2,"seq":4}`, `{"stream":"a","x":{"seq":4}`, `{"stream":"a","seq":0}`, `{"stream":"a","seq":`, `{"stream":"a","seq":01}`, `{"stream":"a","seq":+1}`, `{"stream":"b","seq":1}`, `+OK`, ``,
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		sequence, ok := storedAs("a", answer)
		if !ok {
			return
		}
		var ack pubAck
		if err := json.Unmarshal(answer, &ack); err != nil || ack.Sequence != sequence || sequence == 0 || ack.Duplicate || ack.Error != nil || ack.Count != 0 {
			t.Errorf("%q: %d, and JSON says %+v, %v", answer, sequence, ack, err)
		}
	})
}

func TestTheServersUsualAnswerNeedsNoJSON(t *testing.T) {
	q := open(t, Config{})
	msg, err := encode(jobqueue.Job{Key: "a"})
	check(t, err)
	msg.Subject = q.names.ready(0)
	for _, usual := range []bool{true, false} { // the second is a duplicate
		answer, err := q.ask(within(t), msg, time.Now().Add(q.cfg.Wait))
		check(t, err)
		if _, ok := storedAs(q.names.jobs, answer.Data); ok != usual {
			t.Errorf("%s: usual is %t", answer.Data, ok)
		}
	}
}

// A caller commits its own entry. The engine does not answer, and Config.Wait is longer than
// await.Limit.
func TestCallersLeaveACommitThatIsNotAnswered(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		t.Run(fmt.Sprint(noSync), func(t *testing.T) {
			p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
			q := open(t, Config{URL: p.url(), Wait: 10 * await.Limit, NoSync: noSync})
			enqueue(t, q, jobqueue.Job{Key: "before"})
			p.set(0, true)
			const callers = fewAlone // a further one might be in a batch before it has left
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			errs := make(chan error, callers)
			for i := range callers {
				go func() { _, err := q.Enqueue(ctx, jobqueue.Job{Key: fmt.Sprint("silence ", i)}); errs <- err }()
			}
			await.True(t, "one is under way", func() bool { return p.asked(`silence`) })
			cancel()
			for range callers {
				if err := await.Receive(t, "the caller leaves", errs); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
			await.True(t, "no answer is awaited", func() bool {
				q.answers.mu.Lock()
				defer q.answers.mu.Unlock()
				return len(q.answers.awaited) == 0
			})
			p.set(0, false)
			enqueue(t, q, jobqueue.Job{Key: "after"})
		})
	}
}
