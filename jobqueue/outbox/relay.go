package outbox

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

const (
	batchRows  = 100
	batchBytes = 4 << 20 // of payloads; a batch has at least one row

	// defaultLease is how long the rows of a process that was killed wait for another process.
	defaultLease = 15 * time.Second

	firstBackoff = 100 * time.Millisecond
	mostBackoff  = 30 * time.Second

	databaseWait = 30 * time.Second // for one statement
	finishWait   = 5 * time.Second  // for the statements of a Relay whose context has ended
)

// relay is one call of Relay.
type relay struct {
	*Box
	holder   string  // names the relay in the lease
	acked    []int64 // rows that the queue has and that are not deleted yet
	failures int     // in a row, since a row was relayed
	troubled bool    // the log has said that rows wait
}

// Relay moves committed rows to the queue until ctx ends, and then returns ctx's error. It returns
// the queue's *spillway.Rejection once the queue of this process is drained or closed, with rows
// left. Relay outlives all other failures of the queue and of the database: rows stay, the log says
// why, and Relay tries again after 100 milliseconds, then after twice that and so on, up to 30
// seconds, or after the queue's advice.
//
// A row is deleted after the queue has acknowledged its job. Relay may be called in several
// processes: one at a time has the lease and sends. If its process is killed, another one continues
// within 15 seconds, and sends again at most a batch, 100 rows, whose keys the queue knows.
func (b *Box) Relay(ctx context.Context) error {
	r := &relay{Box: b, holder: cryptorand.Text()}
	for {
		err := r.drain(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if shut(err) {
			return err
		}
		if err == nil {
			if r.troubled {
				b.cfg.Logger.Info("outbox: rows are relayed again", "table", b.cfg.Table)
			}
			r.failures, r.troubled = 0, false
			pause(ctx, b.cfg.Poll-rand.N(b.cfg.Poll/4+1), b.wake)
			continue
		}
		b.failures.Add(1)
		wait := backoff(r.failures, err)
		r.failures, r.troubled = r.failures+1, true
		b.cfg.Logger.Warn("outbox: rows wait", "table", b.cfg.Table, "error", err, "again_in", wait)
		pause(ctx, wait, nil)
	}
}

// drain sends rows until none is left, if no other relay has the lease.
func (r *relay) drain(ctx context.Context) error {
	some, err := r.waiting(ctx)
	if err != nil || !some {
		return err
	}
	held := false
	defer func() {
		if held {
			r.release(ctx, r.holder)
		}
	}()
	for {
		ours, err := r.acquire(ctx, r.holder)
		if err != nil || !ours {
			return err
		}
		held = true
		if some, err := r.round(ctx); err != nil || !some {
			return err
		}
	}
}

// round sends a batch of rows and deletes those that the queue has acknowledged. some is false when
// there was no row. Deletes come first: on a full disk they make room for the refused jobs.
func (r *relay) round(ctx context.Context) (some bool, err error) {
	if err := r.clean(ctx); err != nil {
		return false, err
	}
	rows, err := r.read(ctx)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	refused, err := r.send(ctx, rows)
	if len(r.acked) > 0 {
		r.failures = 0
	}
	err = errors.Join(err, r.clean(ctx))
	for _, f := range refused {
		err = errors.Join(err, r.setAside(ctx, f))
	}
	return true, err
}

// clean deletes the rows that the queue has.
func (r *relay) clean(ctx context.Context) error {
	if len(r.acked) == 0 {
		return nil
	}
	if err := r.remove(ctx, r.acked); err != nil {
		return err
	}
	r.acked = r.acked[:0]
	return nil
}

// refusal is a row that the queue will never take.
type refusal struct {
	row    row
	reason error
}

// send hands rows to the queue, Config.Parallel at a time, and adds the acknowledged ones to
// r.acked. It begins no row once a row failed for the time being, or once half of the lease is over.
func (r *relay) send(ctx context.Context, rows []row) (refused []refusal, err error) {
	var mu sync.Mutex
	began, next := time.Now(), 0
	begin := func() (row, bool) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil || next == len(rows) || ctx.Err() != nil || time.Since(began) > r.lease/2 {
			return row{}, false
		}
		next++
		return rows[next-1], true
	}
	end := func(one row, receipt jobqueue.Receipt, failed error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case failed == nil:
			r.acked = append(r.acked, one.id)
			if receipt.Duplicate {
				r.duplicates.Add(1)
			} else {
				r.stored.Add(1)
			}
		case forGood(failed):
			refused = append(refused, refusal{one, failed})
		case err == nil:
			err = failed
		}
	}
	var senders sync.WaitGroup
	for range min(r.cfg.Parallel, len(rows)) {
		senders.Go(func() {
			for one, ok := begin(); ok; one, ok = begin() {
				job, failed := one.job, one.fault
				var receipt jobqueue.Receipt
				if failed == nil {
					// The context of Relay may have a priority of its own.
					receipt, failed = r.queue.Enqueue(spillway.WithPriority(ctx, job.Priority), job)
				}
				end(one, receipt, failed)
			}
		})
	}
	senders.Wait()
	return refused, err
}

// forGood reports whether a queue that returned err will never take the job: err is ErrTooLarge, or
// none of the errors that Queue.Enqueue returns for the time being.
func forGood(err error) bool {
	if errors.Is(err, jobqueue.ErrTooLarge) {
		return true
	}
	for _, passing := range []error{
		spillway.ErrRejected, jobqueue.ErrUnavailable, jobqueue.ErrDiskFull, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return true
}

// shut reports whether err says that the queue of this process takes no more jobs.
func shut(err error) bool {
	r, ok := errors.AsType[*spillway.Rejection](err)
	return ok && (r.Reason == spillway.ReasonDraining || r.Reason == spillway.ReasonClosed)
}

// backoff returns the wait after a failure, the n-th after that many in a row. Jitter adds at most
// a quarter, so that processes that failed together do not return together.
func backoff(failures int, err error) time.Duration {
	wait := mostBackoff
	if failures < 9 { // 100 ms doubled nine times is above the maximum
		wait = firstBackoff << failures
	}
	if r, ok := errors.AsType[*spillway.Rejection](err); ok {
		wait = max(wait, min(r.RetryAfter, mostBackoff))
	}
	return wait + rand.N(wait/4)
}

// pause waits for d, until wake has a value, or until ctx ends.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}
