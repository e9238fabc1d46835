package loadgen

import (
	"context"
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
	class               uint16
	outcome             Outcome
	status              uint16
	local, there        bool
	text                string
	firstByte           time.Duration
	fresh               *[phaseFirstByte]time.Duration // phases of a new connection; nil: it was kept
}

// explain adds what the target has told of the request.
func (x *record) explain(n *noted) {
	c := n.cause(x.outcome)
	x.there, x.status, x.text, x.local = true, uint16(c.Status), c.Text, c.Local
	x.firstByte = n.durations[phaseFirstByte]
	if n.durations[phaseDNS] > 0 || n.durations[phaseConnect] > 0 || n.durations[phaseTLS] > 0 {
		fresh := [phaseFirstByte]time.Duration(n.durations[:phaseFirstByte])
		x.fresh = &fresh
	}
}

// recorder takes the records of one sending goroutine, and adds them to a shard in batches: a
// thousand clients do not need a thousand sets of histograms. The lock of a recorder is free except
// while a snapshot is taken.
type recorder struct {
	sent   atomic.Uint64
	note   note
	flying context.Context // of requests, with the note

	mu     sync.Mutex
	done   [outcomes + 1]uint64
	shard  *shard
	series time.Duration // length of a step of the series
	n      int
	batch  [64]record
}

func (r *run) newRecorder() *recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := &recorder{shard: &r.shards[len(r.recorders)%len(r.shards)], series: r.cfg.Interval}
	rec.flying = context.WithValue(r.flying, noteKey{}, &rec.note)
	r.recorders = append(r.recorders, rec)
	return rec
}

func (rec *recorder) record(x record) {
	rec.mu.Lock()
	rec.done[x.outcome]++
	rec.batch[rec.n] = x
	if rec.n++; rec.n == len(rec.batch) {
		rec.flush()
	}
	rec.mu.Unlock()
}

// flush empties the batch into the shard. The caller holds the lock.
func (rec *recorder) flush() {
	s := rec.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range rec.batch[:rec.n] {
		s.add(&rec.batch[i], rec.series)
	}
	rec.n = 0
}

// shard is a share of the result, fed by several recorders.
type shard struct {
	mu      sync.Mutex
	latency []byOutcome // by class; one entry without classes
	lag     histogram.Histogram
	aborted uint64
	series  []Point
	causes  causes
	phases  [phases]histogram.Histogram
	recent  *recent  // nil: no Progress is set
	_       [64]byte // shards do not share a cache line
}

// byOutcome holds the latencies of a class.
type byOutcome [outcomes]histogram.Histogram

// recent holds the measurements since the last snapshot.
type recent struct{ latency, lag histogram.Histogram }

func newShards(n, classes int, progress bool) []shard {
	shards := make([]shard, n)
	for i := range shards {
		shards[i].latency = make([]byOutcome, max(classes, 1))
		if progress {
			shards[i].recent = new(recent)
		}
	}
	return shards
}

// add adds a record. The caller holds the lock.
func (s *shard) add(x *record, series time.Duration) {
	lag, latency := int64(x.sent-x.intended), int64(x.end-x.intended)
	s.lag.Record(lag)
	s.step(x.sent/series).Sent++
	if x.outcome == aborted {
		s.aborted++
	} else {
		s.latency[x.class][x.outcome].Record(latency)
		s.step(x.end / series).Outcomes[x.outcome]++
		if x.there {
			s.causes.add(Cause{x.outcome, int(x.status), x.text, x.local, 1})
		}
	}
	if x.firstByte > 0 {
		s.phases[phaseFirstByte].Record(int64(x.firstByte))
	}
	if x.fresh != nil {
		for phase, length := range x.fresh {
			if length > 0 {
				s.phases[phase].Record(int64(length))
			}
		}
	}
	if s.recent != nil {
		s.recent.lag.Record(lag)
		if x.outcome == OK {
			s.recent.latency.Record(latency)
		}
	}
}

// step returns step i of the series, and appends missing steps up to i.
func (s *shard) step(i time.Duration) *Point {
	for len(s.series) <= int(i) {
		s.series = append(s.series, Point{})
	}
	return &s.series[i]
}

// snapshot adds up the counts so far, and takes the recent histograms.
func (r *run) snapshot() Snapshot {
	r.mu.Lock()
	recorders := r.recorders // only ever appended to
	r.mu.Unlock()
	s := Snapshot{Elapsed: max(r.now(), 0)}
	var all uint64
	for _, rec := range recorders {
		rec.mu.Lock()
		rec.flush()
		done := rec.done
		rec.mu.Unlock()
		for o, n := range done { // done is read before sent, so that all never exceeds s.Sent
			all += n
			if o < int(outcomes) {
				s.Outcomes[o] += n
			}
		}
		s.Sent += rec.sent.Load()
	}
	s.InFlight = s.Sent - all
	for i := range r.shards {
		shard := &r.shards[i]
		shard.mu.Lock()
		s.Latency.Merge(&shard.recent.latency)
		s.Lag.Merge(&shard.recent.lag)
		shard.recent.latency, shard.recent.lag = histogram.Histogram{}, histogram.Histogram{}
		shard.mu.Unlock()
	}
	return s
}

// result merges the shards, once all goroutines have ended.
func (r *run) result() *Result {
	res := &Result{Elapsed: r.elapsed}
	if r.classes != nil {
		for _, name := range r.classes.names() {
			res.Classes = append(res.Classes, ClassResult{Name: name})
		}
	}
	for _, rec := range r.recorders {
		rec.flush()
	}
	var all []Cause
	var times [phases]histogram.Histogram
	for i := range r.shards {
		s := &r.shards[i]
		all = append(all, s.causes.list()...)
		for phase := range times {
			times[phase].Merge(&s.phases[phase])
		}
		for class := range s.latency {
			for o := range s.latency[class] {
				res.Outcomes[o].Latency.Merge(&s.latency[class][o])
				if r.classes != nil {
					res.Classes[class].Outcomes[o].Latency.Merge(&s.latency[class][o])
				}
			}
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
	res.Causes = sumCauses(all)
	for phase := range times {
		if times[phase].Count() > 0 {
			res.Phases = append(res.Phases, Phase{phaseNames[phase], times[phase]})
		}
	}
	res.Offered = res.Aborted
	for o := range res.Outcomes {
		res.Outcomes[o].Count = res.Outcomes[o].Latency.Count()
		res.Offered += res.Outcomes[o].Count
		for i := range res.Classes {
			part := &res.Classes[i].Outcomes[o]
			part.Count = part.Latency.Count()
		}
	}
	res.Partial = r.stopped.Load() || res.Aborted > 0
	if r.cfg.Open != nil {
		res.Waited = r.waited.Load()
		res.judge()
	} else {
		res.judgeVoid()
	}
	return res
}
