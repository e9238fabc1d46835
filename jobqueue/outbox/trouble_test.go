package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func TestAJobThatIsRefusedForGoodHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s site, q jobqueue.Queue) {
		var said logtest.Log
		b := open(t, s, q, Config{Logger: said.Logger()})
		done := worker(t, q)
		commit(t, b, jobqueue.Job{Key: "before"}, jobqueue.Job{Key: "large", Payload: make([]byte, 3<<20), Header: map[string]string{"kind": "x"}, Priority: spillway.High}, jobqueue.Job{Key: "after"})
		begin(t, b)
		await.True(t, "the others are done and deleted, and the large one is set aside", func() bool {
			return len(done()) == 2 && said.With("refuses a job for good") != "" && stats(t, b).Waiting == 0
		})
		refused, err := b.Refused(t.Context(), 9)
		if err != nil || len(refused) != 1 {
			t.Fatalf("%d refused, %v", len(refused), err)
		}
		one := refused[0]
		if one.Job.Key != "large" || len(one.Job.Payload) != 3<<20 || one.Job.Header["kind"] != "x" || one.Job.Priority != spillway.High || !strings.Contains(one.Reason, "too large") {
			t.Errorf("%d %s %s %s", one.ID, one.Job.Key, one.Job.Priority, one.Reason)
		}
		if n := stats(t, b); n.Refusals != 1 || n.Failures != 0 {
			t.Errorf("%+v", n)
		}

		if err := b.Retry(t.Context(), one.ID); err != nil { // in vain
			t.Fatal(err)
		}
		await.True(t, "it is refused again", func() bool { s := stats(t, b); return s.Refusals == 2 && s.Refused == 1 })
		again, err := b.Refused(t.Context(), 9)
		if err != nil || len(again) != 1 || again[0].ID <= one.ID || again[0].Job.Key != "large" {
			t.Fatalf("%d refused, %v", len(again), err)
		}
		for _, err := range []error{b.Retry(t.Context(), one.ID), b.Remove(t.Context(), one.ID)} { // its old number
			if !errors.Is(err, jobqueue.ErrNotFound) {
				t.Error(err)
			}
		}
		if err := b.Remove(t.Context(), again[0].ID); err != nil {
			t.Error(err)
		}
		if n := stats(t, b); n.Refused != 0 || n.Waiting != 0 {
			t.Errorf("%+v", n)
		}
	})
}

func TestARefusedJobThatTheQueueTakesLaterRuns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		var narrow atomic.Bool
		narrow.Store(true)
		q := &recorder{Queue: inMemory(t, memory.Config{}), before: func(jobqueue.Job) error {
			if narrow.Load() {
				return errors.New("a name that is not allowed \x00\xff" + strings.Repeat("x", 5000))
			}
			return nil
		}}
		b := open(t, s, q, Config{})
		commit(t, b, jobqueue.Job{Key: "a", Delay: time.Hour}, jobqueue.Job{Key: "b"})
		begin(t, b)
		await.True(t, "both are refused", func() bool { return stats(t, b).Refused == 2 })
		narrow.Store(false)
		refused, err := b.Refused(t.Context(), 1)
		if err != nil || len(refused) != 1 || refused[0].Job.Key != "a" || len(refused[0].Reason) > longestReason || refused[0].Age < 0 {
			t.Fatalf("%+v, %v", refused, err)
		}
		noError(t, b.Retry(t.Context(), refused[0].ID))
		await.True(t, "it is relayed", func() bool { return slices.Equal(q.keys(), []string{"a"}) })
	})
}

// A program that does not use Enqueue may write anything.
func TestARowThatIsNoJobHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		b := open(t, s, inMemory(t, memory.Config{}), Config{})
		rows := map[string]string{
			"header":   `INSERT INTO spillway_outbox (key, priority, delay, header, payload) VALUES ('h', 0, 0, '[', 'x')`,
			"priority": `INSERT INTO spillway_outbox (key, priority, delay, header, payload) VALUES ('p', 300, 0, 'null', 'x')`,
		}
		if s.Dialect == SQLite { // which has values of any type in any column
			rows["converting"] = `INSERT INTO spillway_outbox (key, priority, delay, header, payload) VALUES ('t', 'urgent', 0, 'null', 'x')`
		}
		for _, row := range rows {
			if _, err := b.db.ExecContext(t.Context(), row); err != nil {
				t.Fatal(err)
			}
		}
		commit(t, b, jobqueue.Job{Key: "good"})
		begin(t, b)
		await.True(t, "the good one is relayed", func() bool { s := stats(t, b); return s.Waiting == 0 && s.Stored == 1 })
		refused, err := b.Refused(t.Context(), 9)
		if err != nil || len(refused) != len(rows) {
			t.Fatalf("%+v, %v", refused, err)
		}
		for _, one := range refused {
			for word := range rows {
				if strings.Contains(one.Reason, "not a job") && strings.Contains(one.Reason, word) {
					delete(rows, word)
				}
			}
		}
		if len(rows) > 0 {
			t.Errorf("%v is missing in %+v", rows, refused)
		}
	})
}

func TestAFullQueueLeavesTheRowsAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		q := inMemory(t, memory.Config{MaxQueued: 2})
		var said logtest.Log
		b := open(t, s, q, Config{Logger: said.Logger()})
		for i := range 6 {
			commit(t, b, jobqueue.Job{Key: fmt.Sprint(i)})
		}
		begin(t, b)
		await.True(t, "it backs off", func() bool { return stats(t, b).Failures >= 2 })
		if n := stats(t, b); n.Waiting != 4 || n.Stored != 2 || n.Refused != 0 || n.Oldest <= 0 || said.With("rows wait") == "" {
			t.Errorf("%+v", n)
		}
		done := worker(t, q)
		await.True(t, "all are done", func() bool { return len(done()) == 6 })
		await.True(t, "the log says that it goes on", func() bool { return said.With("relayed again") != "" })
	})
}

func TestAnEngineThatGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		cfg := embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"}
		server := serve(t, cfg)
		cfg.Listen = strings.TrimPrefix(server.URL(), "nats://")
		q := overJetStream(t, jetstream.Config{URL: server.URL(), Wait: 300 * time.Millisecond})
		b := open(t, s, q, Config{})
		begin(t, b)
		commit(t, b, jobqueue.Job{Key: "before"})
		empty(t, b)
		noError(t, server.Close(context.Background()))
		commit(t, b, jobqueue.Job{Key: "away"}) // the caller does not notice
		await.True(t, "it backs off", func() bool { return stats(t, b).Failures >= 2 })
		if n := stats(t, b); n.Waiting != 1 || n.Refused != 0 {
			t.Errorf("%+v", n)
		}
		await.True(t, "the server starts", func() bool { // another process may briefly have the port
			again, err := embedded.Start(cfg)
			if err == nil {
				t.Cleanup(func() { _ = again.Close(context.Background()) })
			}
			return err == nil
		})
		done := worker(t, q)
		empty(t, b)
		await.True(t, "both are done", func() bool { return done()["before"] > 0 && done()["away"] > 0 })
	})
}

func TestBackoffsGrowAndHaveABoundAndJitter(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: firstBackoff, 3: 8 * firstBackoff, 8: 256 * firstBackoff, 9: mostBackoff, 1 << 30: mostBackoff} {
		seen := map[time.Duration]bool{}
		for range 100 {
			got := backoff(failures, errPlanted)
			if seen[got] = true; got < want || got >= want+want/4 {
				t.Errorf("after %d failures %s", failures, got)
			}
		}
		if len(seen) < 50 {
			t.Errorf("after %d failures %d values", failures, len(seen))
		}
	}
	for advice, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: mostBackoff, 0: firstBackoff} {
		err := fmt.Errorf("wrapped: %w", &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: advice})
		if got := backoff(0, err); got < want || got >= want+want/4 {
			t.Errorf("advice %s: %s", advice, got)
		}
	}
}

func TestWhichErrorsAreForGood(t *testing.T) {
	for err, want := range map[error]bool{
		jobqueue.ErrTooLarge:    true,
		errPlanted:              true,
		jobqueue.ErrUnavailable: false,
		jobqueue.ErrDiskFull:    false,
		&spillway.Rejection{Reason: spillway.ReasonQueueFull}: false,
		context.DeadlineExceeded:                              false,
	} {
		if got := forGood(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// A file that may not grow is SQLite's full disk: the caller learns it, and the relay makes room.
func TestAFullDiskFailsTheCallerAndNotTheRelay(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	s.DSN += "&_pragma=max_page_count(64)"
	q := &recorder{Queue: inMemory(t, memory.Config{MaxPayload: 2000})}
	b := open(t, s, q, Config{})
	commit(t, b, jobqueue.Job{Key: "refused", Payload: make([]byte, 5000)}) // to set it aside takes room
	stored := 0
	fill := func() (err error) {
		for err == nil && stored < 10_000 {
			if err = inTx(t.Context(), b, jobqueue.Job{Key: fmt.Sprint(stored), Payload: make([]byte, 1500)}); err == nil {
				stored++
			}
		}
		return err
	}
	if err := fill(); stored < 20 || err == nil || !strings.Contains(err.Error(), "did not store 1 jobs") || !strings.Contains(err.Error(), "full") {
		t.Fatalf("after %d jobs: %v", stored, err)
	}
	begin(t, b)
	await.True(t, "the relay has made room", func() bool { s := stats(t, b); return s.Waiting == 0 && s.Refused == 1 })
	full := stored
	if err := fill(); stored < full+5 || err != nil && !strings.Contains(err.Error(), "full") {
		t.Errorf("after %d and %d jobs: %v", full, stored, err)
	}
	empty(t, b)
	if n := len(q.keys()); n != stored {
		t.Errorf("%d of %d jobs arrived", n, stored)
	}
}

// What a database that is not migrated, or away, does is a failure that Relay outlives.
func TestADatabaseThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		var said logtest.Log
		b := open(t, s, inMemory(t, memory.Config{}), Config{Logger: said.Logger()})
		rename := func(from, to string) {
			t.Helper()
			if _, err := b.db.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
				t.Fatal(err)
			}
		}
		commit(t, b, jobqueue.Job{Key: "1"})
		rename("spillway_outbox", "gone")
		begin(t, b)
		await.True(t, "it backs off", func() bool { return b.failures.Load() >= 2 })
		if _, err := b.Stats(t.Context()); err == nil || said.With("spillway_outbox") == "" {
			t.Errorf("Stats: %v", err)
		}
		if err := inTx(t.Context(), b, jobqueue.Job{}); err == nil || !strings.Contains(err.Error(), "did not store") {
			t.Errorf("Enqueue: %v", err)
		}
		rename("gone", "spillway_outbox")
		empty(t, b)
	})
}

func TestTwoCallsOfRetryMakeOneJob(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		b := open(t, s, inMemory(t, memory.Config{MaxPayload: 1}), Config{})
		commit(t, b, jobqueue.Job{Payload: make([]byte, 2)})
		stop := begin(t, b)
		await.True(t, "it is refused", func() bool { return stats(t, b).Refused == 1 })
		_ = stop()
		refused, err := b.Refused(t.Context(), 9)
		if err != nil || len(refused) != 1 {
			t.Fatalf("%+v, %v", refused, err)
		}
		errs := make(chan error)
		for range 8 {
			go func() { errs <- b.Retry(t.Context(), refused[0].ID) }()
		}
		ok := 0
		for range 8 {
			if err := await.Receive(t, "Retry returns", errs); err == nil {
				ok++
			} else if !errors.Is(err, jobqueue.ErrNotFound) {
				t.Error(err)
			}
		}
		if n := stats(t, b); ok != 1 || n.Waiting != 1 || n.Refused != 0 {
			t.Errorf("%d succeeded, %+v", ok, n)
		}
	})
}

var _ Execer = (*sql.Conn)(nil)

// SQLite itself gives no turns: with more connections the relay may send nothing while this loop runs.
func TestAWriterWithoutPausesLeavesTurnsToTheRelay(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	s.DSN = strings.Replace(s.DSN, "synchronous(OFF)", "synchronous(FULL)", 1) // a commit holds the lock for long
	b := open(t, s, inMemory(t, memory.Config{}), Config{})
	b.db.SetMaxOpenConns(1)
	begin(t, b)
	ctx := await.Context(t, "three batches are relayed meanwhile")
	for b.stored.Load() < 3*batchRows {
		noError(t, inTx(ctx, b, jobqueue.Job{}))
	}
}
