package burst

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// counters are a contestant's counters, in memory that it shares with the lab, because
// it cannot answer: with a hundred thousand runnable goroutines a reply takes seconds, and
// a killed process sends none. They have no lock for the same reason: a goroutine
// preempted inside would hold it for seconds. Times are nanoseconds.
type counters struct {
	began            atomic.Int64 // when the first submission was due, of Unix time
	offered, ended   atomic.Int64 // when the last one was made and the last accepted job ended, after that; 0 before
	done             tally        // from submission to the end
	no               tally        // how long a refusal took; one in a batch is timed
	shards           [shards]shard
	goroutines       atomic.Int64
	bound            atomic.Int64 // the most that it ever might run at once; 0: it has none
	gc, busy, assist atomic.Int64 // processor time in the runtime's statistics
}

const (
	shards    = 64
	tallyBits = 7 // 128 buckets for each power of two
)

// shard is the counts of some of the generators and their jobs.
type shard struct {
	counts [kinds]atomic.Int64
	_      [64]byte
}

// kind is what is counted. Outcomes are read first: in the other order, refused jobs
// could exceed offered ones.
type kind int

const (
	jobsRefused kind = iota
	jobsOffered
	jobsLate // submitted over lateAfter after they were due
	jobsBegun
	jobsTaken   // that have their buffer
	jobsRan     // nanoseconds from the start of a job to its end, of the finished ones
	acceptedAt  // nanoseconds, the sum of the times at which jobs were submitted that were not refused
	finishedAt  // nanoseconds, the sum of the times at which jobs were submitted that have finished
	workCPU     // nanoseconds of the jobs that were sampled
	workSampled // jobs
	sendCPU     // nanoseconds of the submissions that were sampled
	sendSampled // submissions
	kinds       // how many there are
)

func (s *shard) add(k kind, n int64) int64 { return s.counts[k].Add(n) }

// sum is the counters at one moment.
type sum struct {
	counts           [kinds]int64
	done, no         histogram.Histogram
	gc, busy, assist float64
}

func (c *counters) sum() sum {
	s := sum{done: c.done.histogram(), no: c.no.histogram(), gc: float64(c.gc.Load()), busy: float64(c.busy.Load()), assist: float64(c.assist.Load())}
	for i := range c.shards {
		for k := range s.counts {
			s.counts[k] += c.shards[i].counts[k].Load()
		}
	}
	s.counts[jobsOffered] = max(s.counts[jobsOffered], s.counts[jobsRefused]+int64(s.done.Count()))
	return s
}

// reported is the mean latency in ms as the source counts it: of the finished jobs, from their start.
func (s *sum) reported() float64 {
	return float64(s.counts[jobsRan]) / float64(s.done.Count()) / 1e6
}

// trueLatency is the mean latency in ms from submission at a moment: what still waits or runs counts
// with its age.
func (s *sum) trueLatency(at time.Duration) float64 {
	accepted := s.counts[jobsOffered] - s.counts[jobsRefused]
	open := max(0, accepted-int64(s.done.Count()))
	age := max(0, float64(open)*float64(at)-float64(s.counts[acceptedAt]-s.counts[finishedAt]))
	return (s.done.Sum() + age) / float64(accepted) / 1e6
}

// each is the processor time of one of those that were sampled, in seconds.
func (s *sum) each(cpu, sampled kind) float64 {
	return float64(s.counts[cpu]) / float64(max(s.counts[sampled], 1)) / 1e9
}

// workShare is the jobs' share of the processor time, without what they did for the collector. The runtime
// counts elapsed time, which on a busy machine is more than the processor time, so its
// shares are used and not its seconds.
func (s *sum) workShare(cpu float64) float64 {
	share := s.each(workCPU, workSampled) * float64(s.counts[jobsTaken]) / cpu
	if s.busy > 0 {
		share -= s.assist / s.busy
	}
	return share
}

// tally counts durations like a histogram.
type tally [64 << tallyBits]atomic.Uint64

func (t *tally) record(ns int64) {
	v := uint64(max(ns, 0))
	shift := max(bits.Len64(v)-1-tallyBits, 0)
	t[shift<<tallyBits+int(v>>shift)].Add(1)
}

// histogram is what was counted so far.
func (t *tally) histogram() (h histogram.Histogram) {
	for i := range t {
		if n := t[i].Load(); n > 0 {
			shift := max(i>>tallyBits-1, 0)
			h.RecordN(int64(i-shift<<tallyBits)<<shift+(1<<shift-1)/2, n)
		}
	}
	return h
}
