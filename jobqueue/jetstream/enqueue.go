package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

// Enqueue is described at jobqueue.Queue.
func (q *queue) Enqueue(ctx context.Context, job jobqueue.Job) (jobqueue.Receipt, error) {
	if err := q.open(); err != nil {
		q.counters.refused.Add(1)
		return jobqueue.Receipt{}, err
	}
	if err := ctx.Err(); err != nil {
		return jobqueue.Receipt{}, err
	}
	created := job.Key == ""
	if created {
		job.Key = newKey()
	}
	if job.Priority == spillway.Normal {
		job.Priority = spillway.PriorityFrom(ctx)
	}
	msg, err := encode(job)
	if err != nil {
		return jobqueue.Receipt{}, err
	}
	msg.Subject = q.names.ready(job.Priority)
	if most := q.largest(); most > 0 && int64(size(msg)) > most {
		return jobqueue.Receipt{}, fmt.Errorf("%w: it takes %d bytes, at most %d are possible", jobqueue.ErrTooLarge, size(msg), most)
	}
	e := newEntry(msg, time.Now().Add(q.cfg.Wait))
	if err := q.commits.store(ctx, e); err != nil {
		if errors.Is(err, spillway.ErrRejected) {
			q.counters.refused.Add(1)
		}
		return jobqueue.Receipt{}, err
	}
	// A generated key can only be a duplicate of the first try to store the same job.
	duplicate := e.duplicate && !created
	if duplicate {
		q.counters.duplicates.Add(1)
	} else {
		q.counters.enqueued.Add(1)
	}
	return jobqueue.Receipt{Key: job.Key, Duplicate: duplicate}, nil
}

// largest returns the size of the largest job that fits in a message with room for a reason. Zero
// means that no connection has told the server's limit yet.
func (q *queue) largest() int64 {
	most := q.nc.MaxPayload()
	return most - min(roomForReason, most/2)
}
