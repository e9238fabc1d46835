package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
)

// RefusedJob is a job that the queue refused for good, for example because the job is too large. It
// is in the database until Retry or Remove.
type RefusedJob struct {
	ID     int64         // the number of its row; never reused
	Job    jobqueue.Job  // parts may be missing if another program wrote the row
	Reason string        // the queue's error, at most 4 KiB of it
	Age    time.Duration // since Enqueue, by the database's clock
}

// Refused returns at most limit refused jobs, the oldest first.
func (b *Box) Refused(ctx context.Context, limit int) ([]RefusedJob, error) {
	found, err := b.db.QueryContext(ctx, b.sql.listRefused, max(limit, 0))
	if err != nil {
		return nil, fmt.Errorf("outbox: reading the refused jobs: %w", err)
	}
	defer found.Close()
	var jobs []RefusedJob
	for found.Next() {
		var reason string
		one, err := scan(found, &reason)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, RefusedJob{ID: one.id, Job: one.job, Reason: reason, Age: one.age})
	}
	return jobs, found.Err()
}

// Retry turns a refused job back into a row that waits, behind all others. The error matches
// jobqueue.ErrNotFound if there is no such job.
func (b *Box) Retry(ctx context.Context, id int64) error {
	err := b.within(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, b.sql.copyBack, id); err != nil {
			return err
		}
		return b.drop(ctx, tx, id) // if another call was faster, the copy is rolled back
	})
	if err == nil {
		b.Wake()
	}
	return err
}

// Remove deletes a refused job. The error matches jobqueue.ErrNotFound if there is no such job.
func (b *Box) Remove(ctx context.Context, id int64) error { return b.drop(ctx, b.db, id) }

func (b *Box) drop(ctx context.Context, tx Execer, id int64) error {
	result, err := tx.ExecContext(ctx, b.sql.dropRefused, id)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("outbox: %w: %d", jobqueue.ErrNotFound, id))
	}
	return nil
}
