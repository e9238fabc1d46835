package periodic

import (
	"time"

	"github.com/spillway-go/spillway/metrics"
)

const (
	ofInstants = iota
	ofFailures
	ofPassed
	ofLast
	ofNext
)

var described = []metrics.Metric{
	ofInstants: {Name: "spillway.jobqueue.periodic.instants", Kind: metrics.Counter, Unit: "{instant}", Help: "Instants that this process enqueued, by result: stored, or duplicate of what another process or an earlier call had stored.", Labels: []string{"entry", "result"}},
	ofFailures: {Name: "spillway.jobqueue.periodic.failures", Kind: metrics.Counter, Unit: "{call}", Help: "Calls of Enqueue that failed. They are repeated.", Labels: []string{"entry"}},
	ofPassed:   {Name: "spillway.jobqueue.periodic.passed", Kind: metrics.Counter, Unit: "{occasion}", Help: "Occasions on which this process enqueued nothing for one or more instants. Other processes may have.", Labels: []string{"entry"}},
	ofLast:     {Name: "spillway.jobqueue.periodic.last", Kind: metrics.Gauge, Unit: "s", Help: "The latest instant that this process knows to be enqueued, in seconds since 1970. Absent until there is one.", Labels: []string{"entry"}},
	ofNext:     {Name: "spillway.jobqueue.periodic.next", Kind: metrics.Gauge, Unit: "s", Help: "The next instant, in seconds since 1970. Absent until Run is called.", Labels: []string{"entry"}},
}

// Metrics returns a scheduler's metrics, with the label scheduler set to scheduler, and the label entry set
// to the entry's name. A reading asks nobody.
func Metrics(scheduler string, s *Scheduler) *metrics.Source {
	return metrics.New("scheduler", scheduler, described, func() []metrics.Sample {
		var all []metrics.Sample
		put := func(metric int, n float64, labels ...string) {
			all = append(all, metrics.Sample{Metric: metric, Value: n, Labels: labels})
		}
		at := func(metric int, t time.Time, entry string) {
			if !t.IsZero() {
				put(metric, float64(t.Unix()), entry)
			}
		}
		for i, st := range s.read() {
			name := s.entries[i].Name
			put(ofInstants, float64(st.stored), name, "stored")
			put(ofInstants, float64(st.duplicates), name, "duplicate")
			put(ofFailures, float64(st.failures), name)
			put(ofPassed, float64(st.passed), name)
			at(ofLast, st.last, name)
			at(ofNext, st.next, name)
		}
		return all
	})
}
