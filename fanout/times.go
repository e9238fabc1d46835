package fanout

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// times learns how long a branch takes. It counts samples in buckets an eighth of a power of two
// wide. It halves the counts after a number of calls and after an interval, so that old samples
// fade. A sample that stands for several calls counts as several; otherwise old samples would fade
// slower while calls are quick and few of them measured. The quantiles control second attempts
// only.
type times struct {
	mu     sync.Mutex
	counts [buckets]uint16
	total  int           // sum of counts
	known  int           // samples ever
	fresh  int           // samples since the quantiles were read
	fades  time.Duration // when the counts are halved next, since the Fanout was made

	tenth atomic.Int64 // nanoseconds; zero: not known yet
	upper atomic.Int64
	high  float64 // the quantile in upper
}

const (
	buckets    = 300
	minSamples = 64   // samples before quantiles are read
	remember   = 1024 // calls before the counts are halved
	readAgain  = 16   // samples between two readings of the quantiles

	// fade is the interval at which the counts are halved while their sum exceeds minSamples. A high
	// quantile needs more samples than a few seconds may yield, so fade is long.
	fade = time.Minute
)

// add records a sample that stands for the given number of calls.
func (t *times) add(now, d time.Duration, calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now >= t.fades {
		for ago := now - t.fades; ago >= 0 && t.total > minSamples; ago -= fade {
			t.halve()
		}
		t.fades = now + fade
	}
	t.counts[bucket(d)] += uint16(calls)
	t.total += calls
	t.known++
	t.fresh++
	if t.known < minSamples || t.fresh < readAgain {
		return
	}
	t.fresh = 0
	t.tenth.Store(int64(t.quantile(0.1, 0)))
	t.upper.Store(int64(t.quantile(t.high, 1)))
	if t.total >= remember {
		t.halve()
	}
}

// halve halves the counts, so that old samples fade. It is called with the lock held.
func (t *times) halve() {
	t.total = 0
	for i := range t.counts {
		t.counts[i] /= 2
		t.total += int(t.counts[i])
	}
}

// quick is the tenth percentile of the successes, zero while too few samples are known.
func (t *times) quick() time.Duration { return time.Duration(t.tenth.Load()) }

// slow is the high percentile, zero while too few samples are known.
func (t *times) slow() time.Duration { return time.Duration(t.upper.Load()) }

// quantile returns the lower (edge 0) or the upper (edge 1) end of the bucket
// that quantile q falls into.
func (t *times) quantile(q float64, edge int) time.Duration {
	rank := int(q * float64(t.total))
	for i, n := range t.counts {
		if rank -= int(n); rank < 0 {
			return lowerEnd(i + edge)
		}
	}
	return lowerEnd(buckets)
}

func bucket(d time.Duration) int {
	if d < 8 {
		return 0
	}
	octave := bits.Len64(uint64(d)) - 4
	return min(octave*8+int(d>>octave), buckets-1)
}

// lowerEnd is the lower end of bucket i: bucket(lowerEnd(i)) is i.
func lowerEnd(i int) time.Duration {
	if i < 8 {
		return 0
	}
	octave := i/8 - 1
	return time.Duration(i-octave*8) << octave
}
