package outbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

// faults makes one step of a database fail. A step is a statement, or the beginning or the end of a
// transaction.
type faults struct {
	mu    sync.Mutex
	steps int    // so far
	at    int    // the step that fails; zero: none
	after bool   // the step is done, and its answer is lost
	hit   func() // called at the fault
}

// step makes a step, unless it is the one to fail. undo ends what a step began whose answer is lost.
func (f *faults) step(do func() error, undo func()) error {
	f.mu.Lock()
	f.steps++
	fails := f.steps == f.at
	f.mu.Unlock()
	if !fails {
		return do()
	}
	if f.after && do() == nil {
		undo()
	}
	f.hit()
	return errPlanted
}

func (f *faults) made() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.steps
}

// faultyConn is a connection of either driver.
type faultyConn struct {
	driver.Conn
	*faults
}

func (c faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	err = c.step(func() (err error) {
		result, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	}, func() {})
	return result, err
}

func (c faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.step(func() (err error) {
		rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return err
	}, func() { _ = rows.Close() })
	return rows, err
}

func (c faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (tx driver.Tx, err error) {
	err = c.step(func() (err error) {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
		return err
	}, func() { _ = tx.Rollback() })
	return faultyTx{tx, c.faults}, err
}

type faultyTx struct {
	driver.Tx
	*faults
}

func (t faultyTx) Commit() error {
	err := t.step(t.Tx.Commit, func() {})
	if err == errPlanted && !t.after {
		_ = t.Rollback()
	}
	return err
}

type faultyConnector struct {
	from driver.Driver
	dsn  string
	*faults
}

func (c faultyConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.from.Open(c.dsn)
	return faultyConn{conn, c.faults}, err
}

func (c faultyConnector) Driver() driver.Driver { return c.from }

// A relay is ended at each of its steps, before and after the database has done it, as a kill would.
// The next one does the rest. In between, a fault of the database alone: the relay itself goes on.
func TestAFaultAtAnyStepLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		b := open(t, s, nil, Config{})
		trial := func(at int, after, ends bool) {
			engine := inMemory(t, memory.Config{MaxPayload: 9})
			q := &recorder{Queue: engine}
			name := fmt.Sprintf("fault at %d, after: %v, ends: %v", at, after, ends)
			keys := []string{"1", "2", "3"}
			commit(t, b, jobqueue.Job{Key: "1"}, jobqueue.Job{Key: "2"}, jobqueue.Job{Key: "large", Payload: make([]byte, 10)}, jobqueue.Job{Key: "3"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f := &faults{at: at, after: after, hit: func() {
				if ends {
					cancel()
				}
			}}
			db := sql.OpenDB(faultyConnector{b.db.Driver(), s.DSN, f})
			defer db.Close()
			faulty, err := New(db, s.Dialect, q, Config{Poll: time.Millisecond})
			noError(t, err)
			faulty.lease = time.Millisecond
			ended := make(chan error, 1)
			go func() { ended <- faulty.Relay(ctx) }()
			await.True(t, name+": the relay has ended, or all is relayed and the lease given back", func() bool {
				n := stats(t, b)
				return ctx.Err() != nil || n.Waiting == 0 && n.Refused == 1 && f.made() >= at
			})
			cancel()
			if err := await.Receive(t, "Relay ends", ended); err != context.Canceled {
				t.Errorf("%s: %v", name, err)
			}
			// What is not done after a kill is done by the next.
			next := open(t, s, q, Config{})
			next.lease = time.Millisecond
			stop := begin(t, next)
			await.True(t, name+": all is relayed", func() bool { n := stats(t, b); return n.Waiting == 0 && n.Refused == 1 })
			_ = stop()
			_ = next.db.Close()
			held, err := engine.Stats(t.Context())
			if err != nil || held.Ready != len(keys) {
				t.Errorf("%s: %+v, %v", name, held, err)
			}
			got := q.keys()
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, keys) {
				t.Errorf("%s: %q", name, got)
			}
			refused, err := b.Refused(t.Context(), 9)
			if err != nil || len(refused) != 1 {
				t.Fatalf("%s: %+v, %v", name, refused, err)
			}
			noError(t, b.Remove(t.Context(), refused[0].ID))
		}
		const steps = 11 // look, lease, read, delete, four to set aside, lease, read, release
		for at := 1; at <= steps+1; at++ {
			trial(at, false, true)
			trial(at, true, true)
		}
		for at := 1; at <= steps+1; at++ {
			trial(at, false, false)
			trial(at, true, false)
		}
	})
}
