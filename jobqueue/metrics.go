package jobqueue

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/metrics"
)

const (
	ofJobs = iota
	ofEnqueued
	ofRuns
	ofRunning
	ofAway
)

var described = []metrics.Metric{
	ofJobs:     {Name: "spillway.jobqueue.jobs", Kind: metrics.Gauge, Unit: "{job}", Help: "Jobs that the engine holds, by state: ready, delayed, in_flight or dead. Every process that uses the queue shows the same.", Labels: []string{"state"}},
	ofEnqueued: {Name: "spillway.jobqueue.enqueued", Kind: metrics.Counter, Unit: "{job}", Help: "Jobs of this process, by what became of them: stored, duplicate or refused. A queue that drains refuses, too.", Labels: []string{"result"}},
	ofRuns:     {Name: "spillway.jobqueue.runs", Kind: metrics.Counter, Unit: "{run}", Help: "Runs in this process, by their end: done, retried, deferred with no attempt counted, buried as a dead letter, or lost, which is one whose end the engine was not told in time.", Labels: []string{"result"}},
	ofRunning:  {Name: "spillway.jobqueue.running", Kind: metrics.UpDownCounter, Unit: "{job}", Help: "Handlers that run in this process."},
	ofAway:     {Name: "spillway.jobqueue.engine_away", Kind: metrics.UpDownCounter, Unit: "{queue}", Help: "1: the engine did not answer as it should, or the queue is closed; its jobs are not shown."},
}

// metricsWait bounds a reading, so that a scrape does not wait for an unreachable engine.
const metricsWait = 2 * time.Second

// Metrics returns a queue's metrics, with the label queue set to name. Each reading calls Stats,
// which asks the engine for at most two seconds. Without an answer spillway.jobqueue.engine_away is
// 1 and spillway.jobqueue.jobs is absent, because zeros would look like an empty queue. The metrics
// of this process are always present.
//
// A collector reads its sources one after the other: give each queue its own collector.
func Metrics(name string, q Queue) *metrics.Source {
	return metrics.New("queue", name, described, func() []metrics.Sample {
		ctx, cancel := context.WithTimeout(context.Background(), metricsWait)
		defer cancel()
		return samples(q.Stats(ctx))
	})
}

func samples(s Stats, err error) []metrics.Sample {
	var all []metrics.Sample
	put := func(metric int, n float64, labels ...string) {
		all = append(all, metrics.Sample{Metric: metric, Value: n, Labels: labels})
	}
	if err != nil {
		put(ofAway, 1)
	} else {
		put(ofAway, 0)
		put(ofJobs, float64(s.Ready), "ready")
		put(ofJobs, float64(s.Delayed), "delayed")
		put(ofJobs, float64(s.InFlight), "in_flight")
		put(ofJobs, float64(s.Dead), "dead")
	}
	put(ofEnqueued, float64(s.Enqueued), "stored")
	put(ofEnqueued, float64(s.Duplicates), "duplicate")
	put(ofEnqueued, float64(s.Refused), "refused")
	put(ofRuns, float64(s.Done), "done")
	put(ofRuns, float64(s.Retried), "retried")
	put(ofRuns, float64(s.Deferred), "deferred")
	put(ofRuns, float64(s.Buried), "buried")
	put(ofRuns, float64(s.Lost), "lost")
	put(ofRunning, float64(s.Running))
	return all
}
