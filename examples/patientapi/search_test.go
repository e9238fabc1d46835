package patientapi

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPageSizeIsBounded(t *testing.T) {
	for limit, want := range map[int]int{1: 1, 20: 20, MaxSearch: MaxSearch, MaxSearch + 1: MaxSearch, 0: MaxSearch, -1: MaxSearch, math.MaxInt: MaxSearch} {
		if got := (PatientSearch{Limit: limit}).PageSize(); got != want {
			t.Errorf("limit %d: pages of %d, want %d", limit, got, want)
		}
	}
}

func TestNumbersOfASearch(t *testing.T) {
	q := PatientSearch{IDs: []string{"P000007", "P000001", "P000007"}, After: "P000003"}
	if ids, after, err := q.Numbers(); err != nil || !slices.Equal(ids, []int{7, 1, 7}) || after != 3 {
		t.Errorf("%v after %d, %v", ids, after, err)
	}
	for _, q := range []PatientSearch{{After: "P1"}, {IDs: []string{"P000001", ""}}} {
		if ids, after, err := q.Numbers(); !errors.Is(err, ErrMalformedID) || ids != nil || after != 0 {
			t.Errorf("%v after %d, %v", ids, after, err)
		}
	}
}

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

func TestLogsShowNothingOfASearch(t *testing.T) {
	p := full()
	q := PatientSearch{IDs: []string{p.ID}, Identifier: p.Identifiers[0], Name: p.Name.Family, Birth: Dates{First: p.BirthDate}, After: "P000041"}
	page := Page{Patients: []Patient{p}, More: true}
	o := Observation{Patient: p.ID, Text: "heart rate", Value: 71.5}
	var shown bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(h).Info("searched", "query", q, "query pointer", &q, "page", page, "page pointer", &page, "observation", o, "pointer", &o)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		fmt.Fprintf(&shown, verb+verb+verb+verb+verb+verb, q, &q, page, &page, o, &o)
	}
	for _, secret := range []string{p.ID, p.Identifiers[0].Value, p.Name.Given, p.Name.Family, p.BirthDate, "P000041", "heart rate", "71.5"} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%q is shown in %s", secret, &shown)
		}
	}
}

func TestClearedPageShowsNobody(t *testing.T) {
	page := Page{More: true}
	*page.Next() = full()
	page.Clear()
	if page.More || len(page.Patients) != 0 || page.Patients == nil || text(page.Next()) != text(Patient{}) {
		t.Error("the cleared page still shows somebody")
	}
}
