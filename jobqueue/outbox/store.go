package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

// row is a row of the outbox.
type row struct {
	id    int64
	age   time.Duration
	job   jobqueue.Job // Delay is what is left of it
	fault error        // the row is no job: another program has written it
}

// bounded limits a statement, so that a connection that died without a word does not hold a relay
// for ever.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, databaseWait)
}

// finishing is bounded for statements that a relay still makes when its context has ended.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), finishWait)
}

// waiting reports whether there is a row. It takes no lock.
func (b *Box) waiting(ctx context.Context) (some bool, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := b.db.QueryRowContext(ctx, b.sql.waiting).Scan(&some); err != nil {
		return false, fmt.Errorf("outbox: looking for rows: %w", err)
	}
	return some, nil
}

// acquire takes the lease or renews it. Nothing but the order of rows and the number of duplicates
// depends on the lease.
func (b *Box) acquire(ctx context.Context, holder string) (ours bool, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	result, err := b.db.ExecContext(ctx, b.sql.acquire, holder, b.lease.Seconds())
	if err != nil {
		return false, fmt.Errorf("outbox: taking the lease: %w", err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// release gives the lease back, so that the next relay with rows need not wait for the lease's end.
// After an error the lease ends by itself.
func (b *Box) release(ctx context.Context, holder string) {
	ctx, cancel := finishing(ctx)
	defer cancel()
	_, _ = b.db.ExecContext(ctx, b.sql.release, holder)
}

// read returns a batch of rows, the lowest numbers first. It always begins at the lowest: a row
// whose transaction took long has a lower number than rows that are gone.
func (b *Box) read(ctx context.Context) ([]row, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	found, err := b.db.QueryContext(ctx, b.sql.read)
	if err != nil {
		return nil, fmt.Errorf("outbox: reading rows: %w", err)
	}
	defer found.Close()
	var rows []row
	for bytes := 0; bytes < batchBytes && found.Next(); {
		one, err := scan(found)
		if err != nil {
			return nil, err
		}
		bytes += len(one.job.Payload)
		rows = append(rows, one)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("outbox: reading rows: %w", err)
	}
	return rows, nil
}

// scan reads the current row, with the columns after its number into more. A row that is no job is no
// error.
func scan(found *sql.Rows, more ...any) (row, error) {
	var (
		one      row
		age      float64
		priority int64
		delay    int64
		header   string
	)
	columns := append([]any{&one.id}, more...)
	// In SQLite a column may have a value of any type: what always converts comes first.
	err := found.Scan(append(columns, &age, &one.job.Key, &header, &one.job.Payload, &priority, &delay)...)
	switch {
	case err != nil && one.id == 0:
		return row{}, fmt.Errorf("outbox: reading a row: %w", err)
	case err != nil:
		one.fault = fmt.Errorf("outbox: not a job: %w", err)
		return one, nil
	}
	if err := json.Unmarshal([]byte(header), &one.job.Header); err != nil {
		one.fault = fmt.Errorf("outbox: not a job: its header is no object of texts: %w", err)
	}
	one.age = max(0, time.Duration(age*float64(time.Second)))
	one.job.Delay = time.Duration(delay)
	if one.job.Delay > 0 {
		one.job.Delay = max(0, one.job.Delay-one.age)
	}
	if priority < int64(spillway.Low) || priority > int64(spillway.Critical) {
		one.fault = fmt.Errorf("outbox: not a job: its priority is %d", priority)
	} else {
		one.job.Priority = spillway.Priority(priority)
	}
	return one, nil
}

// remove deletes rows, also when ctx has ended: the queue has their jobs.
func (b *Box) remove(ctx context.Context, ids []int64) error {
	ctx, cancel := finishing(ctx)
	defer cancel()
	if _, err := b.db.ExecContext(ctx, b.sql.remove(ids)); err != nil {
		return fmt.Errorf("outbox: deleting %d rows that the queue has: %w", len(ids), err)
	}
	return nil
}

const longestReason = 4 << 10

// setAside moves a row to the refused jobs.
func (b *Box) setAside(ctx context.Context, f refusal) error {
	ctx, cancel := finishing(ctx)
	defer cancel()
	reason := strings.ReplaceAll(strings.ToValidUTF8(f.reason.Error()[:min(len(f.reason.Error()), longestReason)], "?"), "\x00", "?")
	moved := false
	err := b.within(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, b.sql.copyRefused, f.row.id, reason)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if moved = n > 0; err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, b.sql.remove([]int64{f.row.id}))
		return err
	})
	if err != nil {
		return fmt.Errorf("outbox: setting row %d aside: %w (the queue refuses it: %s)", f.row.id, err, reason)
	}
	if moved { // otherwise another relay was faster
		b.refusals.Add(1)
		b.cfg.Logger.Error("outbox: the queue refuses a job for good", "table", b.cfg.Table, "id", f.row.id, "key", f.row.job.Key, "reason", reason)
	}
	return nil
}

// within runs fn in a transaction.
func (b *Box) within(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
