package patientapi

import (
	"testing"
	"time"
)

func FuzzTimesInSeconds(f *testing.F) {
	for _, c := range [][5]int64{{5, 1, 7, 0, 6}, {5, 1, 5, 999_999_999, 5}, {4, 999_999_999, 5, 0, 5}, {5, 0, 6, 1, 6}, {-1, 5, 0, 0, -1}, {-1, 5, 0, 0, 0}} {
		f.Add(c[0], c[1], c[2], c[3], c[4])
	}
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
