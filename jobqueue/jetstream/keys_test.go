package jetstream

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

func TestSpansOfForgottenKeysStayFew(t *testing.T) {
	at := time.Unix(1000, 0)
	later := at.Add(time.Minute)
	got := join([]span{{9, 9, at}, {1, 3, later}, {5, 5, at}, {4, 4, at}, {2, 8, at}, {20, 21, at}, {30, 30, at.Add(-time.Hour)}}, at, 9)
	if want := []span{{1, 9, later}, {20, 21, at}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var many []span
	for i := range uint64(20) {
		many = append(many, span{3 * i, 3 * i, at})
	}
	if got := join(many, at, 9); len(got) != 9 || got[8].First != 3*19 {
		t.Errorf("%v", got)
	}
	at = at.Add(time.Nanosecond)
	if text, err := json.Marshal(span{math.MaxUint64, math.MaxUint64, at.Local()}); err != nil || len(text) >= spanSize {
		t.Errorf("%s takes %d bytes, %v", text, len(text), err)
	}
}

// The record of a job's dead letter names the job for good.
func TestTheMarkOfAJobIsRead(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{Key: "k"})
	meta, err := taken(t, q).Metadata()
	check(t, err)
	if n, at, ok := markOf(idOf(meta)); !ok || n != meta.Sequence.Stream || !at.Equal(meta.Timestamp) {
		t.Errorf("%d, %v, %t", n, at, ok)
	}
	for _, text := range []string{"", "1", "-", "x-1", "1-x", "keys"} {
		if _, _, ok := markOf(text); ok {
			t.Errorf("%q is the mark of a job", text)
		}
	}
}

// A process replays a dead letter, dies before the letter is removed, and replays it again.
func TestADeadLetterThatIsReplayedTwiceIsOneJob(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{Key: "k"})
	msg := taken(t, q)
	if _, err := q.inter(within(t), q.receive(msg, time.Now()), "broken"); err != nil {
		t.Fatal(err)
	}
	_ = msg.Ack()
	letter, err := q.letter(within(t), 1)
	check(t, err)
	check(t, q.Replay(within(t), 1))
	// The dead letter is back, as if it had not been removed.
	msg = &nats.Msg{Subject: letter.Subject, Header: nats.Header{headerJob: letter.Header[headerJob], headerDead: letter.Header[headerDead]}, Data: letter.Data}
	if _, err := q.js.PublishMsg(within(t), msg); err != nil {
		t.Fatal(err)
	}
	check(t, q.Replay(within(t), 2))
	if s := stats(t, q); s.Dead != 0 || s.Ready+s.Delayed+s.InFlight > 1 {
		t.Errorf("it is more than one job: %+v", s)
	}
}

// Somebody wrote to the stream of records: Purge failed, and a job with a known key was never stored.
func TestAForeignRecordHarmsNobody(t *testing.T) {
	q := open(t, Config{Policy: jobqueue.Policy{MaxAttempts: 2}})
	enqueue(t, q, jobqueue.Job{Key: "k"})
	msg := taken(t, q)
	for _, id := range []string{forgetting, q.receive(msg, time.Now()).id} {
		if _, err := q.js.Publish(within(t), q.names.returnsOf(id), []byte("-7000 junk")); err != nil {
			t.Fatal(err)
		}
	}
	_ = msg.Nak()
	attempts := make(chan int, 9)
	stop := work(t, q, func(_ context.Context, d *jobqueue.Delivery) error { attempts <- d.Attempt; return nil })
	if n := await.Receive(t, "it runs", attempts); n != 2 {
		t.Errorf("attempt %d", n)
	}
	_ = stop()
	if r := enqueue(t, q, jobqueue.Job{Key: "k"}); !r.Duplicate {
		t.Error("its key is not known")
	}
	enqueue(t, q, jobqueue.Job{Key: "waits"})
	if n, err := q.Purge(within(t)); n != 1 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	if r := enqueue(t, q, jobqueue.Job{Key: "waits"}); r.Duplicate {
		t.Error("its key is still known")
	}
}
