package results

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

func TestLatenciesAreCountedByTheFirstBoundThatTheyDoNotExceed(t *testing.T) {
	if !slices.IsSorted(Bounds) || Bounds[0] != 10 || Bounds[len(Bounds)-1] != 100_000_000 {
		t.Errorf("the bounds are %v", Bounds)
	}
	var h histogram.Histogram
	for latency, n := range map[time.Duration]uint64{
		0: 1, 9 * time.Microsecond: 1, 10 * time.Microsecond: 1, 11 * time.Microsecond: 1,
		16 * time.Millisecond: 3, 20 * time.Millisecond: 2, 21 * time.Millisecond: 5,
		69 * time.Second: 1, time.Hour: 1, math.MaxInt64: 1,
	} {
		h.RecordN(int64(latency), n)
	}
	want := map[int64]uint64{10: 3, 15: 1, 20_000: 5, 30_000: 5, 70_000_000: 1, 100_000_000: 2}
	if got := Took(&h); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAPointKeepsItsLatencies(t *testing.T) {
	for text, want := range map[string]Point{
		`{"at":0.1,"ok":8,"rejected":0,"errors":0,"timeouts":0,"took_us":{"20000":5,"30000":3}}`: {At: .1, OK: 8, Took: map[int64]uint64{20_000: 5, 30_000: 3}},
		`{"at":0.2,"ok":8,"rejected":0,"errors":0,"timeouts":0}`:                                 {At: .2, OK: 8}, // as it was before there were any
	} {
		var got, again Point
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.At != want.At || got.OK != want.OK || !maps.Equal(got.Took, want.Took) {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
		data, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &again); err != nil || !maps.Equal(again.Took, want.Took) {
			t.Errorf("%s is written as %s", text, data)
		}
	}
}
