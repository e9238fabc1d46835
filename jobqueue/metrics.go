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
	ofEnqueued: {Name: "spillway.jobqueue.enqueued", Kind: metrics.Counter, Unit: "{job}", Help: "Jobs of this process, by what the engine made of them: stored, duplicate or refused.", Labels: []string{"result"}},
	ofRuns:     {Name: "spillway.jobqueue.runs", Kind: metrics.Counter, Unit: "{run}", Help: "Runs in this process, by their end: done, retried, deferred by a limiter, buried as a dead letter, or lost.", Labels: []string{"result"}},
	ofRunning:  {Name: "spillway.jobqueue.running", Kind: metrics.UpDownCounter, Unit: "{job}", Help: "Handlers that run in this process."},
	ofAway:     {Name: "spillway.jobqueue.engine_away", Kind: metrics.UpDownCounter, Unit: "{queue}", Help: "1: the engine did not answer, and nothing else of the queue is shown."},
}

// metricsWait bounds a reading, so that a scrape does not wait for an engine that is away.
const metricsWait = 3 * time.Second

// Metrics returns a queue as metrics, under the label queue with the name. Each reading is a
// call of Stats: it asks the engine, for three seconds at most. While the engine does not
// answer, or the queue is closed, spillway.jobqueue.engine_away alone is shown: zeros would
// be taken for an empty queue.
func Metrics(name string, q Queue) *metrics.Source {
	return metrics.New("queue", name, described, func() []metrics.Sample {
		ctx, cancel := context.WithTimeout(context.Background(), metricsWait)
		defer cancel()
		s, err := q.Stats(ctx)
		if err != nil {
			return []metrics.Sample{{Metric: ofAway, Value: 1}}
		}
		return samples(s)
	})
}

func samples(s Stats) []metrics.Sample {
	all := []metrics.Sample{{Metric: ofAway}, {Metric: ofRunning, Value: float64(s.Running)}}
	put := func(metric int, label string, n float64) {
		all = append(all, metrics.Sample{Metric: metric, Value: n, Labels: []string{label}})
	}
	put(ofJobs, "ready", float64(s.Ready))
	put(ofJobs, "delayed", float64(s.Delayed))
	put(ofJobs, "in_flight", float64(s.InFlight))
	put(ofJobs, "dead", float64(s.Dead))
	put(ofEnqueued, "stored", float64(s.Enqueued))
	put(ofEnqueued, "duplicate", float64(s.Duplicates))
	put(ofEnqueued, "refused", float64(s.Refused))
	put(ofRuns, "done", float64(s.Done))
	put(ofRuns, "retried", float64(s.Retried))
	put(ofRuns, "deferred", float64(s.Deferred))
	put(ofRuns, "buried", float64(s.Buried))
	put(ofRuns, "lost", float64(s.Lost))
	return all
}
