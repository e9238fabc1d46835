package patientapi

import (
	"math"
	"testing"
	"time"
)

func TestTimesInSeconds(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		times         Times
		since, before int64
	}{
		{Times{}, math.MinInt64, math.MaxInt64},
		{Times{Since: at}, 1_700_000_000, math.MaxInt64},
		{Times{Before: at}, math.MinInt64, 1_700_000_000},
		{Times{at.Add(1), at.Add(time.Second - 1)}, 1_700_000_001, 1_700_000_001},
		{Times{at.Add(-1), at.In(time.FixedZone("", 3600))}, 1_700_000_000, 1_700_000_000},
		{Times{time.Unix(-1, 5), time.Unix(0, 0)}, 0, 0},
	} {
		if since, before := c.times.Seconds(); since != c.since || before != c.before {
			t.Errorf("%v: %d to %d, want %d to %d", c.times, since, before, c.since, c.before)
		}
	}
}

func FuzzTimesInSeconds(f *testing.F) {
	f.Add(int64(5), int64(1), int64(7), int64(0), int64(6))
	f.Fuzz(func(t *testing.T, since, sinceNano, before, beforeNano, updated int64) {
		const century = 100 * 365 * 24 * 3600
		moment := func(s, ns int64) time.Time { return time.Unix(s%century, max(0, ns%1e9)) }
		q := Times{moment(since, sinceNano), moment(before, beforeNano)}
		at := moment(updated, 0)
		from, to := q.Seconds()
		if by := from <= at.Unix() && at.Unix() < to; by != (!at.Before(q.Since) && at.Before(q.Before)) {
			t.Errorf("%v is in %v: %v by seconds", at, q, by)
		}
	})
}
