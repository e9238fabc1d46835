package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/metrics"
)

// Stats is a snapshot of an outbox: of the tables, and thus the same in every process. [Metrics] also
// counts what this Box has done.
type Stats struct {
	Waiting int           // rows that are committed and not known to be in the queue
	Oldest  time.Duration // age of the oldest waiting row since its Enqueue; zero without one
	Refused int           // jobs for Refused, Retry and Remove
}

// counters count what a Box has done.
type counters struct {
	stored     atomic.Uint64 // rows whose job the queue stored
	duplicates atomic.Uint64 // rows whose job the queue had already
	refusals   atomic.Uint64 // rows that were set aside
	failures   atomic.Uint64 // tries of Relay that ended in a back-off
}

// Stats asks the database, which counts the rows.
func (b *Box) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	var oldest float64
	if err := b.db.QueryRowContext(ctx, b.sql.depth).Scan(&s.Waiting, &oldest, &s.Refused); err != nil {
		return Stats{}, fmt.Errorf("outbox: counting rows: %w", err)
	}
	s.Oldest = max(0, time.Duration(oldest*float64(time.Second)))
	return s, nil
}

const (
	ofJobs = iota
	ofOldest
	ofRelayed
	ofFailures
	ofAway
)

var described = []metrics.Metric{
	ofJobs:     {Name: "spillway.jobqueue.outbox.jobs", Kind: metrics.Gauge, Unit: "{job}", Help: "Jobs in the tables of the outbox, by state: waiting for the queue, or refused by the queue for good. Every process that uses the tables shows the same.", Labels: []string{"state"}},
	ofOldest:   {Name: "spillway.jobqueue.outbox.oldest", Kind: metrics.Gauge, Unit: "s", Help: "Age of the oldest job that waits for the queue. Every process that uses the tables shows the same."},
	ofRelayed:  {Name: "spillway.jobqueue.outbox.relayed", Kind: metrics.Counter, Unit: "{job}", Help: "Jobs that this process handed to the queue, by what became of them: stored, duplicate or refused for good.", Labels: []string{"result"}},
	ofFailures: {Name: "spillway.jobqueue.outbox.failures", Kind: metrics.Counter, Unit: "{try}", Help: "Tries of this process that ended in a back-off: the queue was full or away, or the database did not answer."},
	ofAway:     {Name: "spillway.jobqueue.outbox.database_away", Kind: metrics.UpDownCounter, Unit: "{outbox}", Help: "1: the database did not answer as it should; its jobs are not shown."},
}

// metricsWait bounds a reading, so that a scrape does not wait for an unreachable database.
const metricsWait = 2 * time.Second

// Metrics returns an outbox's metrics, with the label outbox set to name. Each reading calls Stats,
// which asks the database for at most two seconds. Without an answer spillway.jobqueue.outbox.database_away is
// 1, and the jobs and their age are absent. Give each outbox its own collector.
func Metrics(name string, b *Box) *metrics.Source {
	return metrics.New("outbox", name, described, func() []metrics.Sample {
		ctx, cancel := context.WithTimeout(context.Background(), metricsWait)
		defer cancel()
		s, err := b.Stats(ctx)
		return b.samples(s, err)
	})
}

func (b *Box) samples(s Stats, err error) []metrics.Sample {
	var all []metrics.Sample
	put := func(metric int, n float64, labels ...string) {
		all = append(all, metrics.Sample{Metric: metric, Value: n, Labels: labels})
	}
	if err != nil {
		put(ofAway, 1)
	} else {
		put(ofAway, 0)
		put(ofJobs, float64(s.Waiting), "waiting")
		put(ofJobs, float64(s.Refused), "refused")
		put(ofOldest, s.Oldest.Seconds())
	}
	put(ofRelayed, float64(b.stored.Load()), "stored")
	put(ofRelayed, float64(b.duplicates.Load()), "duplicate")
	put(ofRelayed, float64(b.refusals.Load()), "refused")
	put(ofFailures, float64(b.failures.Load()))
	return all
}
