package loadgen

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// aborted marks, inside the package, a request that the end of the run cut off.
const aborted = outcomes

// record is one request: three instants since the run began, and an outcome.
type record struct {
	intended, sent, end time.Duration
	outcome             Outcome
}

// recorder takes the records of one sending goroutine. Counts are updated at once;
// the rest is added to a shard in batches, so that sending takes no lock and a
// thousand clients do not need a thousand sets of histograms.
type recorder struct {
	sent atomic.Uint64
	done [outcomes + 1]atomic.Uint64

	shard  *shard
	series time.Duration // length of a step of the series
	n      int
	batch  [64]record
}

func (r *run) newRecorder() *recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := &recorder{shard: &r.shards[len(r.recorders)%len(r.shards)], series: r.cfg.Interval}
	r.recorders = append(r.recorders, rec)
	return rec
}

func (rec *recorder) record(x record) {
	rec.batch[rec.n] = x
	if rec.n++; rec.n == len(rec.batch) {
		rec.flush()
	}
	rec.done[x.outcome].Add(1)
}

// flush empties the batch into the shard.
func (rec *recorder) flush() {
	s := rec.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range rec.batch[:rec.n] {
		s.lag.Record(int64(x.sent - x.intended))
		s.step(x.sent/rec.series).Sent++
		if x.outcome == aborted {
			s.aborted++
			continue
		}
		s.latency[x.outcome].Record(int64(x.end - x.intended))
		s.step(x.end / rec.series).Outcomes[x.outcome]++
	}
	rec.n = 0
}

// shard is a share of the result, fed by several recorders.
type shard struct {
	mu      sync.Mutex
	latency [outcomes]histogram.Histogram
	lag     histogram.Histogram
	aborted uint64
	series  []Point
	_       [64]byte // shards do not share a cache line
}

// step returns step i of the series, and makes those up to it.
func (s *shard) step(i time.Duration) *Point {
	for len(s.series) <= int(i) {
		s.series = append(s.series, Point{})
	}
	return &s.series[i]
}

// snapshot adds up the live counts.
func (r *run) snapshot() Snapshot {
	r.mu.Lock()
	recorders := r.recorders // only ever appended to
	r.mu.Unlock()
	s := Snapshot{Elapsed: r.now()}
	var done uint64
	for _, rec := range recorders {
		for o := range rec.done { // read before sent: a request is never done before it is sent
			n := rec.done[o].Load()
			done += n
			if o < int(outcomes) {
				s.Outcomes[o] += n
			}
		}
		s.Sent += rec.sent.Load()
	}
	s.InFlight = s.Sent - done
	return s
}

// result merges the shards, once all goroutines have ended.
func (r *run) result() *Result {
	res := &Result{Elapsed: r.elapsed}
	for _, rec := range r.recorders {
		rec.flush()
	}
	for i := range r.shards {
		s := &r.shards[i]
		for o := range s.latency {
			res.Outcomes[o].Latency.Merge(&s.latency[o])
		}
		res.Lag.Merge(&s.lag)
		res.Aborted += s.aborted
		for i, p := range s.series {
			if i == len(res.Series) {
				res.Series = append(res.Series, Point{At: time.Duration(i) * r.cfg.Interval})
			}
			res.Series[i].Sent += p.Sent
			for o, n := range p.Outcomes {
				res.Series[i].Outcomes[o] += n
			}
		}
	}
	res.Offered = res.Aborted
	for o := range res.Outcomes {
		res.Outcomes[o].Count = res.Outcomes[o].Latency.Count()
		res.Offered += res.Outcomes[o].Count
	}
	res.Partial = r.stopped.Load() || res.Aborted > 0
	if r.cfg.Open != nil {
		res.judge(r.waited.Load(), r.cfg.MaxInFlight)
	}
	return res
}
