package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func TestCommittedJobsRunOnceAndRolledBackOnesNever(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s site, q jobqueue.Queue) {
		b := open(t, s, q, Config{})
		done := worker(t, q)
		begin(t, b)
		const each = 20
		for i := range each {
			commit(t, b, jobqueue.Job{Key: fmt.Sprint("alone ", i)})
			commit(t, b, jobqueue.Job{Key: fmt.Sprint("first ", i)}, jobqueue.Job{Key: fmt.Sprint("second ", i)}, jobqueue.Job{Key: "twice"})
			err := b.within(t.Context(), func(tx *sql.Tx) error {
				if err := b.Enqueue(t.Context(), tx, jobqueue.Job{Key: "rolled back"}); err != nil {
					t.Error(err)
				}
				return errPlanted
			})
			if err != errPlanted {
				t.Fatal(err)
			}
		}
		empty(t, b)
		await.True(t, "all are done", func() bool { return len(done()) == 3*each+1 })
		for key, n := range done() {
			if n != 1 || key == "rolled back" {
				t.Errorf("%s was done %d times", key, n)
			}
		}
		if n := stats(t, b); n.Stored != 3*each+1 || n.Duplicates != each-1 || n.Failures != 0 || n.Oldest != 0 {
			t.Errorf("%+v", n)
		}
	})
}

func TestAJobArrivesAsItWasGiven(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		q := &recorder{Queue: inMemory(t, memory.Config{})}
		b := open(t, s, q, Config{})
		ctx := spillway.WithPriority(t.Context(), spillway.High)
		jobs := []jobqueue.Job{
			{Key: "é '\";--\n", Priority: spillway.Low, Payload: []byte("\x00\xff'"), Header: map[string]string{"a b": "\"ü\n"}},
			{Key: "bare"},
			{Payload: []byte{}},
			{Key: "later", Delay: 10 * time.Hour, Priority: spillway.Critical},
		}
		noError(t, inTx(ctx, b, jobs...))
		relaying, cancel := context.WithCancel(spillway.WithPriority(t.Context(), spillway.Critical)) // must not become the jobs' own
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- b.Relay(relaying) }()
		empty(t, b)
		cancel()
		if err := await.Receive(t, "Relay ends", ended); err != context.Canceled {
			t.Error(err)
		}
		got := q.jobs
		if len(got) != len(jobs) {
			t.Fatalf("%+v", got)
		}
		if g, w := got[0], jobs[0]; g.Key != w.Key || g.Priority != w.Priority || string(g.Payload) != string(w.Payload) || g.Header["a b"] != w.Header["a b"] {
			t.Errorf("%+v", g)
		}
		if g := got[1]; g.Key != "bare" || g.Priority != spillway.High || len(g.Payload) != 0 || len(g.Header) != 0 {
			t.Errorf("%+v", g)
		}
		if g := got[2]; len(g.Key) < 20 || g.Delay != 0 {
			t.Errorf("%+v", g)
		}
		if g := got[3]; g.Delay <= 9*time.Hour || g.Delay > 10*time.Hour || g.Priority != spillway.Critical {
			t.Errorf("%+v", g)
		}
	})
}

// A normal job's priority is the zero value, which an engine replaces by that of the context.
func TestANormalJobStaysNormal(t *testing.T) {
	t.Parallel()
	q := inMemory(t, memory.Config{})
	b := open(t, onSQLite(t), q, Config{})
	commit(t, b, jobqueue.Job{Key: "normal"})
	ctx, cancel := context.WithCancel(spillway.WithPriority(t.Context(), spillway.Critical))
	defer cancel()
	go func() { _ = b.Relay(ctx) }()
	empty(t, b)
	if s, err := q.Stats(t.Context()); err != nil || s.Priorities[spillway.Normal].Ready != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestOneRelayKeepsTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		fails := 0
		q := &recorder{Queue: inMemory(t, memory.Config{})}
		q.before = func(jobqueue.Job) error {
			if fails++; fails%70 == 0 { // a failure for the time being keeps the order
				return jobqueue.ErrUnavailable
			}
			return nil
		}
		b := open(t, s, q, Config{})
		var want []string
		for i := range 250 { // more than two batches
			want = append(want, fmt.Sprint(i))
			commit(t, b, jobqueue.Job{Key: fmt.Sprint(i)})
			if i == 100 {
				begin(t, b)
			}
		}
		empty(t, b)
		if got := q.keys(); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// A number is given when the row is written, and the row is seen when it is committed.
func TestALongTransactionIsNotSkipped(t *testing.T) {
	t.Parallel()
	s := onPostgreSQL(t)
	q := &recorder{Queue: inMemory(t, memory.Config{})}
	b := open(t, s, q, Config{})
	begin(t, b)
	tx, err := b.db.BeginTx(t.Context(), nil)
	noError(t, err)
	noError(t, b.Enqueue(t.Context(), tx, jobqueue.Job{Key: "long"}))
	commit(t, b, jobqueue.Job{Key: "short"})
	await.True(t, "the other is relayed", func() bool { return len(q.keys()) == 1 })
	noError(t, tx.Commit())
	await.True(t, "the long one is relayed", func() bool { return slices.Equal(q.keys(), []string{"short", "long"}) })
}

// The rows of a batch are in memory at a time.
func TestLargeRowsAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		b := open(t, s, inMemory(t, memory.Config{}), Config{})
		for range 9 {
			commit(t, b, jobqueue.Job{Payload: make([]byte, 1<<20)})
		}
		if rows, err := b.read(t.Context()); err != nil || len(rows) != 4 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		begin(t, b)
		empty(t, b)
	})
}

func TestAPoolOfOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		b := open(t, s, inMemory(t, memory.Config{MaxPayload: 10}), Config{})
		b.db.SetMaxOpenConns(1)
		begin(t, b)
		for i := range 10 {
			commit(t, b, jobqueue.Job{Payload: make([]byte, 2*i)})
		}
		empty(t, b)
		if n := stats(t, b); n.Stored != 6 || n.Refused != 4 {
			t.Errorf("%+v", n)
		}
	})
}

func TestWakeSparesTheWait(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		q := &recorder{Queue: inMemory(t, memory.Config{})}
		b := open(t, s, q, Config{Poll: time.Hour})
		begin(t, b)
		for i := range 5 {
			commit(t, b, jobqueue.Job{})
			b.Wake()
			await.True(t, "it is relayed", func() bool { return len(q.keys()) == i+1 })
		}
	})
}

// A relay may be anywhere between two statements when its context ends.
func TestARelayThatIsStoppedDeletesWhatTheQueueHas(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		ctx, cancel := context.WithCancel(t.Context())
		q := &recorder{Queue: inMemory(t, memory.Config{}), after: func(job jobqueue.Job) {
			if job.Key == "2" {
				cancel()
			}
		}}
		b := open(t, s, q, Config{})
		commit(t, b, jobqueue.Job{Key: "1"}, jobqueue.Job{Key: "2"}, jobqueue.Job{Key: "3"})
		if err := b.Relay(ctx); err != context.Canceled {
			t.Error(err)
		}
		if n := stats(t, b); n.Waiting != 1 || len(q.keys()) != 2 || n.Failures != 0 {
			t.Errorf("%+v, sent %q", n, q.keys())
		}
		if ours, err := b.acquire(t.Context(), "the next"); err != nil || !ours {
			t.Errorf("the lease was not given back: %v", err)
		}
	})
}

func TestAClosedQueueEndsItsRelay(t *testing.T) {
	t.Parallel()
	q := inMemory(t, memory.Config{})
	b := open(t, onSQLite(t), q, Config{})
	noError(t, q.Close())
	commit(t, b, jobqueue.Job{})
	err := b.Relay(await.Context(t, "Relay ends"))
	if r, ok := errors.AsType[*spillway.Rejection](err); !ok || r.Reason != spillway.ReasonClosed {
		t.Error(err)
	}
	if n := stats(t, b); n.Waiting != 1 || n.Refused != 0 {
		t.Errorf("%+v", n)
	}
}

func TestATransactionOfPgxTakesTheStatement(t *testing.T) {
	t.Parallel()
	s := onPostgreSQL(t)
	q := &recorder{Queue: inMemory(t, memory.Config{})}
	b := open(t, s, q, Config{})
	conn, err := pgx.Connect(t.Context(), s.DSN)
	noError(t, err)
	defer conn.Close(t.Context())
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		query, args, err := b.Insert(t.Context(), jobqueue.Job{Key: "native"}, jobqueue.Job{Key: "other", Payload: []byte("x")})
		if err != nil {
			return err
		}
		_, err = tx.Exec(t.Context(), query, args...)
		return err
	})
	noError(t, err)
	begin(t, b)
	empty(t, b)
	if got := q.keys(); !slices.Equal(got, []string{"native", "other"}) {
		t.Errorf("%q", got)
	}
}

func TestTwoQueuesHaveTwoTables(t *testing.T) {
	t.Parallel()
	for d, s := range map[Dialect]site{SQLite: onSQLite(t), PostgreSQL: onPostgreSQL(t)} {
		table := map[Dialect]string{SQLite: "main.mails", PostgreSQL: "mail.box"}[d]
		text, err := Schema(d, table)
		noError(t, err)
		if d == PostgreSQL {
			text = "CREATE SCHEMA mail; " + text
		}
		orders, mails := &recorder{Queue: inMemory(t, memory.Config{})}, &recorder{Queue: inMemory(t, memory.Config{})}
		a, b := open(t, s, orders, Config{}), open(t, s, mails, Config{Table: table})
		if _, err := a.db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		commit(t, a, jobqueue.Job{Key: "order"})
		commit(t, b, jobqueue.Job{Key: "mail"})
		begin(t, a)
		begin(t, b)
		empty(t, a)
		empty(t, b)
		if x, y := orders.keys(), mails.keys(); !slices.Equal(x, []string{"order"}) || !slices.Equal(y, []string{"mail"}) {
			t.Errorf("%q, %q", x, y)
		}
	}
}

func TestWrongUseIsAnError(t *testing.T) {
	b, err := New(nil, SQLite, nil, Config{}) // enough for a process that only enqueues
	noError(t, err)
	for want, job := range map[string]jobqueue.Job{
		"priority": {Priority: 3}, "the key": {Key: "a\x00"}, "has a zero byte": {Header: map[string]string{"a": "\x00"}},
	} {
		if err := b.Enqueue(t.Context(), nil, jobqueue.Job{}, job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", job, err)
		}
	}
	if err := b.Enqueue(t.Context(), nil); err != nil {
		t.Errorf("no jobs: %v", err)
	}
	for _, n := range []int{0, 1001} {
		if _, _, err := b.Insert(t.Context(), make([]jobqueue.Job, n)...); err == nil {
			t.Errorf("%d jobs in a statement", n)
		}
	}
	for want, cfg := range map[string]Config{"Table": {Table: "a b"}, "Poll": {Poll: -1}, "Parallel": {Parallel: -1}} {
		if _, err := New(nil, SQLite, nil, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := New(nil, 0, nil, Config{}); err == nil || !strings.Contains(err.Error(), "SQLite or PostgreSQL") {
		t.Errorf("no dialect: %v", err)
	}
	for _, table := range []string{"a;b", "a.b.c", "1", `"x"`, strings.Repeat("a", 60)} {
		if _, err := Schema(PostgreSQL, table); err == nil {
			t.Errorf("table %q", table)
		}
	}
}

// The largest statement is within the bounds of the databases.
func TestAThousandJobsAreOneStatement(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		b := open(t, s, inMemory(t, memory.Config{}), Config{})
		noError(t, b.Enqueue(t.Context(), b.db, make([]jobqueue.Job, mostInserted)...))
		if n := stats(t, b); n.Waiting != mostInserted {
			t.Errorf("%+v", n)
		}
	})
}
