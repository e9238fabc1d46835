package burst

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/spillway-go/spillway/histogram"
)

// counters are a contestant's counters, in memory that it shares with the lab. They
// are read from outside because the contestant cannot answer: with a hundred thousand
// runnable goroutines a reply takes seconds, and a killed process sends none. They
// have no lock for the same reason: a goroutine preempted inside would hold it for
// seconds.
type counters struct {
	began   atomic.Int64 // when the first submission was due, nanoseconds of Unix time
	offered atomic.Int64 // when the last one was made, nanoseconds after that; 0 before
	ended   atomic.Int64 // when the last accepted job ended, likewise

	done tally // from submission to the end
	no   tally // how long a refusal took; one in a batch is timed
	lag  tally // of the generators behind their schedule

	shards [shards]shard

	goroutines, mostGoroutines atomic.Int64
	running, queued            atomic.Int64 // if the contestant reports it
	bound                      atomic.Int64 // the most it ever ran at once; 0: unbounded

	gc, busy, assist seconds // processor time in the runtime's statistics
}

// shard is the counters of some of the generators and their jobs.
type shard struct {
	offered, refused      atomic.Uint64
	batches, begun, taken atomic.Uint64 // of submissions, jobs, and jobs that have their buffer
	workCPU, workSampled  atomic.Int64  // nanoseconds, jobs
	sendCPU, sendSampled  atomic.Int64  // nanoseconds, submissions
	_                     [64]byte
}

const shards = 64

// sum is the counters at one moment.
type sum struct {
	offered, refused, taken uint64
	workCPU, workSampled    int64
	sendCPU, sendSampled    int64
	done, no, lag           histogram.Histogram
	gc, busy, assist        float64
}

func (c *counters) sum() sum {
	s := sum{
		done: c.done.histogram(), no: c.no.histogram(), lag: c.lag.histogram(),
		gc: c.gc.load(), busy: c.busy.load(), assist: c.assist.load(),
	}
	for i := range c.shards {
		// Outcomes first: in the other order, refused and done could exceed
		// offered.
		p := &c.shards[i]
		s.refused += p.refused.Load()
		s.offered += p.offered.Load()
		s.taken += p.taken.Load()
		s.workCPU += p.workCPU.Load()
		s.workSampled += p.workSampled.Load()
		s.sendCPU += p.sendCPU.Load()
		s.sendSampled += p.sendSampled.Load()
	}
	s.offered = max(s.offered, s.refused+s.done.Count())
	return s
}

// workSeconds is the processor time of all jobs, from that of the sampled ones.
func (s *sum) workSeconds() float64 {
	return float64(s.workCPU) / float64(max(s.workSampled, 1)) * float64(s.taken) / 1e9
}

// sendSeconds is the processor time of all submissions.
func (s *sum) sendSeconds() float64 {
	return float64(s.sendCPU) / float64(max(s.sendSampled, 1)) * float64(s.offered) / 1e9
}

// seconds is a float64 that can be read while it is written.
type seconds struct{ bits atomic.Uint64 }

func (s *seconds) store(v float64) { s.bits.Store(math.Float64bits(v)) }
func (s *seconds) load() float64   { return math.Float64frombits(s.bits.Load()) }

// tally counts durations in 128 buckets for each power of two, like a histogram.
type tally [64 << tallyBits]atomic.Uint64

const tallyBits = 7

func (t *tally) record(ns int64) {
	v := uint64(max(ns, 0))
	shift := max(bits.Len64(v)-1-tallyBits, 0)
	t[shift<<tallyBits+int(v>>shift)].Add(1)
}

// histogram is what was counted so far.
func (t *tally) histogram() histogram.Histogram {
	var h histogram.Histogram
	for i := range t {
		n := t[i].Load()
		if n == 0 {
			continue
		}
		shift := max(i>>tallyBits-1, 0)
		low := int64(i-shift<<tallyBits) << shift
		h.RecordN(low+(1<<shift-1)/2, n)
	}
	return h
}
