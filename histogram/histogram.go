// Package histogram counts values in log-linear buckets: every power of two is divided into 128
// equal steps, so a quantile is off by at most 0.4 % of its value in any range. Histograms of
// different processes merge bucket for bucket without loss. The layout is that of HdrHistogram (Gil
// Tene), with one fixed precision, so that any two histograms can be merged.
//
// Values are non-negative integers, by convention nanoseconds. Recording a value within the range
// recorded so far allocates nothing (go test ./histogram -run Allocates).
//
// Quantiles of quantiles mean nothing: merge the histograms, then ask for the quantile. A metric
// that a Prometheus histogram shows anyway does not need this package.
package histogram

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"
)

const (
	stepBits = 7 // 128 steps to a power of two
	steps    = 1 << stepBits
	// buckets is the number of buckets up to the largest int64. Each value below 2*steps has its own
	// bucket. Each further power of two adds steps buckets.
	buckets = (63 - stepBits + 1) * steps
)

// piece holds the counts of a quarter of a power of two. A piece is small, so that
// a few values far from the others cost little memory.
type piece [pieceSize]uint32

const pieceSize = 32

// index returns the bucket of v, which must not be negative.
func index(v int64) int {
	if v < steps {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - 1 - stepBits
	return shift<<stepBits + int(v>>shift)
}

// bounds returns the smallest and the largest value of bucket i.
func bounds(i int) (low, high int64) {
	if i < 2*steps {
		return int64(i), int64(i)
	}
	shift := i>>stepBits - 1
	low = int64(i-shift<<stepBits) << shift
	return low, low + (1<<shift - 1)
}

// middle returns the value in the middle of bucket i.
func middle(i int) int64 {
	low, high := bounds(i)
	return low + (high-low)/2
}

// Histogram counts values. The zero value is empty and ready to use. Memory grows with the range of
// the recorded values, to about 3 KB for the latencies of one kind of work. A Histogram is not safe
// for concurrent use: give each writer its own and Merge them, or hold a lock.
type Histogram struct {
	pieces   []*piece       // counts by bucket, modulo 2³²; nil where no value fell
	first    uint           // number of the first piece in pieces: no lower value was recorded
	over     map[int]uint64 // high bits of counts that exceed 32 bits, which are rare
	count    uint64
	sum      float64
	min, max int64
}

// Record counts v once. A negative v counts as zero.
func (h *Histogram) Record(v int64) {
	i := index(max(v, 0))
	p := uint(i)/pieceSize - h.first // below first: a large number
	if v < h.min || v > h.max || p >= uint(len(h.pieces)) || h.pieces[p] == nil || h.pieces[p][uint(i)%pieceSize] == math.MaxUint32 {
		h.RecordN(v, 1)
		return
	}
	h.pieces[p][uint(i)%pieceSize]++
	h.count++
	h.sum += float64(v)
}

// RecordN counts v n times.
func (h *Histogram) RecordN(v int64, n uint64) {
	if n == 0 {
		return
	}
	v = max(v, 0)
	h.add(index(v), n)
	if h.count == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.count += n
	h.sum += float64(v) * float64(n)
}

// add counts bucket i n times.
func (h *Histogram) add(i int, n uint64) {
	p := uint(i)/pieceSize - h.first
	if p >= uint(len(h.pieces)) || h.pieces[p] == nil {
		p = h.grow(uint(i) / pieceSize)
	}
	c := &h.pieces[p][uint(i)%pieceSize]
	if n += uint64(*c); n > math.MaxUint32 {
		if h.over == nil {
			h.over = map[int]uint64{}
		}
		h.over[i] += n &^ math.MaxUint32
	}
	*c = uint32(n)
}

// grow makes room for the piece of a number, and returns its index in pieces.
func (h *Histogram) grow(number uint) (p uint) {
	first, end := number, number+1
	if len(h.pieces) > 0 {
		first, end = min(first, h.first), max(end, h.first+uint(len(h.pieces)))
	}
	if n := end - first; n > uint(len(h.pieces)) {
		more := make([]*piece, n) // no spare capacity: growth is rare, and many histograms are kept
		copy(more[max(h.first, first)-first:], h.pieces)
		h.pieces, h.first = more, first
	}
	p = number - h.first
	if h.pieces[p] == nil {
		h.pieces[p] = new(piece)
	}
	return p
}

// bucket is the number of bucket i of piece p.
func (h *Histogram) bucket(p, i int) int { return (int(h.first)+p)*pieceSize + i }

// all yields the number and the count of the non-empty buckets in rising order.
func (h *Histogram) all(yield func(int, uint64) bool) {
	for p, counts := range h.pieces {
		if counts == nil {
			continue
		}
		for i := range counts {
			if n := h.inBucket(p, i); n > 0 && !yield(h.bucket(p, i), n) {
				return
			}
		}
	}
}

// Merge adds the counts of other to h. The result is exactly the histogram of both
// sets of values.
func (h *Histogram) Merge(other *Histogram) {
	if other.count == 0 {
		return
	}
	for i, n := range other.all {
		h.add(i, n)
	}
	if h.count == 0 || other.min < h.min {
		h.min = other.min
	}
	h.max = max(h.max, other.max)
	h.count += other.count
	h.sum += other.sum
}

// Clone returns a copy that shares nothing with h.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.pieces, c.over = slices.Clone(h.pieces), maps.Clone(h.over)
	for p, counts := range c.pieces {
		if counts != nil {
			own := *counts
			c.pieces[p] = &own
		}
	}
	return &c
}

// Count returns how many values were recorded.
func (h *Histogram) Count() uint64 { return h.count }

// Sum returns the exact sum of the values, as far as a float64 holds it.
func (h *Histogram) Sum() float64 { return h.sum }

// Min returns the smallest value, exactly; 0 when empty.
func (h *Histogram) Min() int64 { return h.min }

// Max returns the largest value, exactly; 0 when empty.
func (h *Histogram) Max() int64 { return h.max }

// Mean returns the exact mean; 0 when empty.
func (h *Histogram) Mean() float64 {
	if h.count == 0 {
		return 0
	}
	return h.sum / float64(h.count)
}

// Quantile returns the value at or below which a share q of the values lies
// (nearest rank). The result is off by at most 0.4 %, and 0 when empty.
// Quantile(0) and Quantile(1) are exact.
func (h *Histogram) Quantile(q float64) int64 {
	if h.count == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(h.count)))
	if rank <= 1 || q <= 0 || math.IsNaN(q) {
		return h.min
	}
	if rank >= h.count {
		return h.max
	}
	for p, counts := range h.pieces {
		if counts == nil {
			continue
		}
		if n := h.inPiece(p); n < rank {
			rank -= n
			continue
		}
		for i := range counts {
			n := h.inBucket(p, i)
			if n >= rank {
				return min(max(middle(h.bucket(p, i)), h.min), h.max)
			}
			rank -= n
		}
	}
	return h.max
}

// inBucket is the count of bucket i of piece p, which exists.
func (h *Histogram) inBucket(p, i int) uint64 {
	n := uint64(h.pieces[p][i])
	if h.over != nil {
		n += h.over[h.bucket(p, i)]
	}
	return n
}

// inPiece is the count of all buckets of piece p, which exists.
func (h *Histogram) inPiece(p int) (sum uint64) {
	var odd uint64 // a second sum, as a processor adds to two at once
	for counts := h.pieces[p][:]; len(counts) >= 4; counts = counts[4:] {
		sum += uint64(counts[0]) + uint64(counts[1])
		odd += uint64(counts[2]) + uint64(counts[3])
	}
	sum += odd
	if h.over != nil {
		for i := range pieceSize {
			sum += h.over[h.bucket(p, i)]
		}
	}
	return sum
}

// CountAtMost returns how many values lie in buckets that end at or below v: the cumulative count
// that metric systems expect. It may leave out values that equal v or are up to 0.8 % smaller.
func (h *Histogram) CountAtMost(v int64) uint64 {
	if v < 0 {
		return 0
	}
	if v >= h.max {
		return h.count
	}
	var n uint64
	for i, c := range h.all {
		if _, high := bounds(i); high > v {
			break
		}
		n += c
	}
	return n
}

// Buckets yields the middle and the count of each non-empty bucket, in rising order.
func (h *Histogram) Buckets() iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		for i, n := range h.all {
			if !yield(middle(i), n) {
				return
			}
		}
	}
}

// wire is the JSON form. Buckets holds pairs of a bucket's number and its count. Min and Max are
// exact.
type wire struct {
	Count   uint64      `json:"count"`
	Sum     float64     `json:"sum"`
	Min     int64       `json:"min"`
	Max     int64       `json:"max"`
	Buckets [][2]uint64 `json:"buckets"`
}

// MarshalJSON writes the non-empty buckets; UnmarshalJSON restores the
// histogram bucket for bucket.
func (h Histogram) MarshalJSON() ([]byte, error) {
	w := wire{Count: h.count, Sum: h.sum, Min: h.min, Max: h.max, Buckets: [][2]uint64{}}
	for i, n := range h.all {
		w.Buckets = append(w.Buckets, [2]uint64{uint64(i), n})
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads the output of MarshalJSON. Input that no histogram could have written is an
// error, and leaves h unchanged.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	var r Histogram
	for k, b := range w.Buckets {
		i, n := b[0], b[1]
		if i >= buckets {
			return fmt.Errorf("histogram: bucket %d does not exist", i)
		}
		if n == 0 || k > 0 && i <= w.Buckets[k-1][0] {
			return fmt.Errorf("histogram: bucket %d is empty or out of order", i)
		}
		if r.count+n < r.count {
			return fmt.Errorf("histogram: counts overflow")
		}
		r.add(int(i), n)
		r.count += n
	}
	if r.count != w.Count {
		return fmt.Errorf("histogram: buckets hold %d values, count says %d", r.count, w.Count)
	}
	r.sum, r.min, r.max = w.Sum, w.Min, w.Max
	if r.count > 0 {
		first, last := w.Buckets[0][0], w.Buckets[len(w.Buckets)-1][0]
		if w.Min < 0 || w.Max < w.Min || index(w.Min) != int(first) || index(w.Max) != int(last) {
			return fmt.Errorf("histogram: extremes %d..%d lie outside the buckets", w.Min, w.Max)
		}
	} else if r.sum != 0 || r.min != 0 || r.max != 0 {
		return fmt.Errorf("histogram: an empty histogram has no sum or extremes")
	}
	*h = r
	return nil
}
