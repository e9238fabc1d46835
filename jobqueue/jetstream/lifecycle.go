package jetstream

import (
	"context"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

// open returns why the queue accepts no jobs, or nil.
func (q *queue) open() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch failed := q.failed(); {
	case q.closed:
		return errClosed
	case failed != nil:
		return failed
	case q.drained:
		return &spillway.Rejection{Reason: spillway.ReasonDraining}
	}
	return nil
}

// Open is described at jobqueue.Queue.
func (q *queue) Open() bool { return q.open() == nil }

// shut closes the intake.
func (q *queue) shut(closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.drained {
		q.drained = true
		close(q.draining)
	}
	q.closed = q.closed || closed
}

// join registers a call of Work, unless the queue takes no more work.
func (q *queue) join(w *worker) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.drained || q.closed {
		return false
	}
	q.workers[w] = struct{}{}
	q.working.Add(1)
	return true
}

func (q *queue) leave(w *worker) {
	q.mu.Lock()
	delete(q.workers, w)
	q.mu.Unlock()
	q.working.Done()
}

// Drain is described at jobqueue.Queue.
func (q *queue) Drain(ctx context.Context) error {
	q.shut(false)
	over := make(chan struct{})
	go func() { // ends with the last handler; Close waits for the handlers too
		q.working.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return &spillway.DrainError{Running: int(q.counters.running.Load()), Cause: ctx.Err()}
	}
}

// Close is described at jobqueue.Queue.
func (q *queue) Close() error {
	q.shut(true)
	q.close(jobqueue.ErrLost)
	q.working.Wait()
	q.stragglers.Wait()
	q.commits.end()
	if q.nc.IsConnected() {
		_ = q.nc.FlushTimeout(q.cfg.Wait) // ensure that returned jobs reach the engine
	}
	q.hangUp()
	return nil
}

// Stats is described at jobqueue.Queue. A delayed job counts as Ready until its first delivery,
// which needs a worker. Afterwards a delayed job may count as InFlight; at most MaxInFlight jobs
// do. Running is exact, for this process.
func (q *queue) Stats(ctx context.Context) (jobqueue.Stats, error) {
	c := &q.counters
	s := jobqueue.Stats{
		Priorities: map[spillway.Priority]jobqueue.Depth{},
		Enqueued:   c.enqueued.Load(), Duplicates: c.duplicates.Load(), Refused: c.refused.Load(), Done: c.done.Load(),
		Retried: c.retried.Load(), Deferred: c.deferred.Load(), Buried: c.buried.Load(), Lost: c.lost.Load(),
		Running: int(c.running.Load()),
	}
	err := q.asked(ctx, func(ctx context.Context) error { return q.depths(ctx, &s) })
	return s, q.errorFor(ctx, err)
}

// info asks for a consumer's numbers. In a cluster, a server that has just started answers before it
// knows any: all of its numbers are zero, and it names no leader. The question is then asked again.
func (q *queue) info(ctx context.Context, c js.Consumer) (*js.ConsumerInfo, error) {
	for {
		info, err := c.Info(ctx)
		if err != nil || !q.clustered() || info.Cluster != nil && info.Cluster.Leader != "" {
			return info, err
		}
		if !pause(ctx, retryPause) {
			return nil, ctx.Err()
		}
	}
}

// depths asks the engine for the numbers of jobs.
func (q *queue) depths(ctx context.Context, s *jobqueue.Stats) error {
	slots, err := q.info(ctx, q.slots)
	if err != nil {
		return err
	}
	// The engine does not distinguish a job held by a worker from a job that waits for the next
	// attempt. The number of slots in use bounds the jobs held by workers. A returned slot counts
	// as in use until a worker takes it.
	inHand := slots.NumAckPending
	var sum jobqueue.Depth
	changed := false // somebody has changed a part of the queue by hand
	for i, p := range priorities {
		info, err := q.info(ctx, q.ready[i])
		if err != nil {
			return err
		}
		d := jobqueue.Depth{Ready: int(info.NumPending), InFlight: min(info.NumAckPending, inHand)}
		d.Delayed = info.NumAckPending - d.InFlight
		inHand -= d.InFlight
		_, changes, _ := strays(info.Config, js.ConsumerConfig{FilterSubject: q.names.ready(p), MaxAckPending: mostPending})
		changed = changed || len(changes) > 0
		s.Priorities[p] = d
		sum.Ready, sum.Delayed, sum.InFlight = sum.Ready+d.Ready, sum.Delayed+d.Delayed, sum.InFlight+d.InFlight
	}
	letters := 0
	for _, policy := range []js.StreamConfig{q.jobsConfig(), q.returnsConfig(), q.deadConfig()} {
		stream, err := q.js.Stream(ctx, policy.Name)
		if err != nil {
			return err
		}
		letters = int(stream.CachedInfo().State.Msgs) // of the last one
		_, changes, wrong := adapt(stream.CachedInfo().Config, policy)
		changed = changed || len(changes) > 0 || wrong != nil
	}
	if changed || slots.NumAckPending+int(slots.NumPending) < q.inFlight {
		q.mend(ctx, false)
	}
	s.Depth, s.Dead = sum, letters
	return nil
}
