package histogram

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestEveryValueLiesInItsBucketAndBucketsAdjoin(t *testing.T) {
	next := int64(0)
	for i := range buckets {
		low, high := bounds(i)
		if low != next {
			t.Fatalf("bucket %d starts at %d, want %d", i, low, next)
		}
		if index(low) != i || index(high) != i {
			t.Fatalf("bucket %d: bounds %d..%d are indexed %d..%d", i, low, high, index(low), index(high))
		}
		next = high + 1
	}
	if next != math.MinInt64 { // the largest int64 plus one
		t.Fatalf("the last bucket ends at %d", next-1)
	}
}

// exact is a slow reference histogram: it keeps every value.
type exact []int64

func (e exact) quantile(q float64) int64 {
	s := slices.Sorted(slices.Values(e))
	rank := int(math.Ceil(q * float64(len(s))))
	return s[min(max(rank, 1), len(s))-1]
}

func TestQuantilesAgreeWithTheSortedValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var h Histogram
		var e exact
		for range 1 + r.IntN(2000) {
			v := int64(math.Exp(r.Float64() * 40))
			h.Record(v)
			e = append(e, v)
		}
		for _, q := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.999, 1} {
			got, want := float64(h.Quantile(q)), float64(e.quantile(q))
			if math.Abs(got-want) > 0.004*want+0.5 {
				t.Fatalf("quantile %v of %d values: %v, want %v", q, len(e), got, want)
			}
		}
	}
}

func TestMergeEqualsOneHistogramBucketForBucket(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var all, merged Histogram
	for range 8 {
		var part Histogram
		for range 1000 {
			v := int64(r.Uint64() >> (1 + r.IntN(60)))
			all.Record(v)
			part.Record(v)
		}
		merged.Merge(&part)
	}
	if !maps.Equal(maps.Collect(all.Buckets()), maps.Collect(merged.Buckets())) ||
		all.Count() != merged.Count() || all.Min() != merged.Min() || all.Max() != merged.Max() {
		t.Fatal("merged parts differ from the whole")
	}
}

func TestJSONRestoresEveryBucket(t *testing.T) {
	var h Histogram
	for _, v := range []int64{0, 1, 127, 128, 1e6, 1e9, math.MaxInt64} {
		h.RecordN(v, 3)
	}
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var back Histogram
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(maps.Collect(h.Buckets()), maps.Collect(back.Buckets())) || back.Mean() != h.Mean() {
		t.Fatalf("restored %v, want %v", back, h)
	}
}

func TestNegativeCountsAsZeroAndEmptyIsZero(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Mean() != 0 || h.CountAtMost(5) != 0 {
		t.Fatal("an empty histogram has values")
	}
	h.Record(-5)
	if h.Min() != 0 || h.Max() != 0 || h.Count() != 1 {
		t.Fatalf("after -5: min %d, max %d, count %d", h.Min(), h.Max(), h.Count())
	}
}

func TestCountAtMostIsCumulative(t *testing.T) {
	var h Histogram
	for v := range int64(10_000) {
		h.Record(v)
	}
	for _, v := range []int64{-1, 0, 99, 255, 5000, 9999, 20000} {
		got := float64(h.CountAtMost(v))
		want := float64(min(max(v+1, 0), 10_000))
		if math.Abs(got-want) > 0.008*want+0.5 {
			t.Errorf("at most %d: %v, want %v", v, got, want)
		}
	}
}

func TestRecordingWithinTheRangeAllocatesNothing(t *testing.T) {
	var h Histogram
	h.Record(1 << 40)
	if n := testing.AllocsPerRun(100, func() { h.Record(123_456) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"count":3,"sum":3,"min":1,"max":1,"buckets":[[1,3]]}`))
	f.Add([]byte(`{"count":0,"buckets":[]}`))
	f.Add([]byte(`{"count":1,"sum":1,"min":1,"max":1,"buckets":[[99999999,1]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var h Histogram
		if json.Unmarshal(data, &h) != nil {
			return
		}
		for _, q := range []float64{0, 0.5, 1} {
			if v := h.Quantile(q); v < h.Min() || v > h.Max() {
				t.Fatalf("quantile %v is %d, outside %d..%d", q, v, h.Min(), h.Max())
			}
		}
		again, err := json.Marshal(h)
		if err != nil {
			t.Skip() // JSON cannot hold the sum
		}
		var back Histogram
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%s does not read back: %v", again, err)
		}
	})
}

// A bucket may count beyond 32 bits, although few ever do.
func TestABucketCountsBeyond32Bits(t *testing.T) {
	const many = 3<<32 + 5
	var a, b Histogram
	for range 3 {
		a.RecordN(1000, 1<<32-1)
	}
	a.RecordN(1000, many-3*(1<<32-1))
	a.RecordN(2000, 7)
	b.RecordN(1000, many)
	b.RecordN(2000, 7)
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var read, merged Histogram
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	merged.Merge(&a)
	merged.Merge(&b)
	for name, h := range map[string]*Histogram{"recorded": &a, "at once": &b, "read": &read, "cloned": a.Clone()} {
		for v, n := range h.Buckets() {
			if want := uint64(many); v <= 1500 && n != want {
				t.Errorf("%s: %d counted, want %d", name, n, want)
			}
		}
	}
	if n := merged.CountAtMost(1500); n != 2*many {
		t.Errorf("merged: %d", n)
	}
}
