package fhir

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func TestDatesMeanWhatTheyAreAsPreciseAs(t *testing.T) {
	for _, c := range []struct {
		values      []string
		first, last string
		some, ok    bool
	}{
		{nil, "", "", true, true},
		{[]string{"eq1980-02"}, "1980-02-01", "1980-02-29", true, true},
		{[]string{"ge1980-02"}, "1980-02-01", "", true, true},
		{[]string{"le1980-02"}, "", "1980-02-29", true, true},
		{[]string{"gt1980-02"}, "1980-03-01", "", true, true},
		{[]string{"lt1980-02"}, "", "1980-01-31", true, true},
		{[]string{"1980", "1980-05", "ge1980-05-03"}, "1980-05-03", "1980-05-31", true, true},
		{[]string{"1980", "1981"}, "1981-01-01", "1980-12-31", false, true},
		{[]string{"gt9999"}, "", "", false, true},
		{[]string{"le9999"}, "", "", true, true},
		{[]string{"0000"}, "", "", false, false},
		{[]string{"1981-02-29"}, "", "", false, false},
		{[]string{"ap1980"}, "", "", false, false},
		{[]string{"1980", ""}, "1980-01-01", "1980-12-31", true, true},
		{[]string{"1980-01-01T00:00:00Z"}, "", "", false, false},
	} {
		asked, some, ok := between(c.values, parseDate)
		if got := days(asked); some != c.some || ok != c.ok || some && got != (patientapi.Dates{First: c.first, Last: c.last}) {
			t.Errorf("%q: %+v %t %t", c.values, got, some, ok)
		}
	}
}

func TestInstantsMeanWhatTheyAreAsPreciseAs(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		require.NoError(t, err)
		return v
	}
	for text, want := range map[string][2]string{
		"2025":                             {"2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		"2025-03":                          {"2025-03-01T00:00:00Z", "2025-04-01T00:00:00Z"},
		"2025-03-05T10:20Z":                {"2025-03-05T10:20:00Z", "2025-03-05T10:21:00Z"},
		"2025-03-05T10:20:30 02:00":        {"2025-03-05T08:20:30Z", "2025-03-05T08:20:31Z"}, // a plus sign that was not escaped
		"2025-03-05T10:20:30.125-01:00":    {"2025-03-05T11:20:30.125Z", "2025-03-05T11:20:30.126Z"},
		"2025-03-05T10:20:30.123456789Z":   {"2025-03-05T10:20:30.123456789Z", "2025-03-05T10:20:30.12345679Z"},
		"2025-12-31T23:59:59-00:00":        {"2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z"},
		"2024-02-29T23:59:59.9Z":           {"2024-02-29T23:59:59.9Z", "2024-03-01T00:00:00Z"},
		"2025-03-05T10:20:30.000000+14:00": {"2025-03-04T20:20:30Z", "2025-03-04T20:20:30.000001Z"},
	} {
		s, ok := parseInstant(text)
		if !ok || !s.from.Equal(at(want[0])) || !s.to.Equal(at(want[1])) {
			t.Errorf("%s: %v to %v, %t", text, s.from, s.to, ok)
		}
	}
	for _, text := range []string{
		"", "2025-03-05T10:20:30", "2025-03-05T10:20", "2025-03-05T24:00:00Z", "2025-03-05 10:20:30Z", "2025-03-05T10:20:30  02:00", "2025-03-05T10:20 30Z", " 2025-03-05T10:20:30Z", "2025-03-05T10:20:30 2:00", "2025-03-05T10:20:30 -02:00",
		"0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "now", "2025-03-05T10:20:30,5Z",
		"2025-03-05T1:20:30Z", "2025-03-05T10:20:30+24:00", "2025-03-05T10:20:30+14:01", "2025-03-05T10:20:30+00:60", "2025-03-05t10:20:30Z", "2025-03-05T10:20:30z", "2025-03-05T10:20:30.Z",
	} {
		if s, ok := parseInstant(text); ok {
			t.Errorf("%q: %v", text, s)
		}
	}
}

// Whatever is asked for, a moment is found exactly if the comparison holds for it.
func FuzzDates(f *testing.F) {
	f.Add("ge1980", "lt1990-05")
	f.Add("2025-03-05T10:20:30.125-01:00", "le9999")
	f.Add("gt9999-12-31", "lt0001")
	f.Fuzz(func(t *testing.T, one, other string) {
		asked, some, ok := between([]string{one, other}, parseInstant)
		if !ok {
			return
		}
		if some && !asked.Before.IsZero() && !asked.Since.Before(asked.Before) {
			t.Fatalf("%q %q: %v", one, other, asked)
		}
		for _, text := range []string{one, other} {
			if text == "" {
				continue
			}
			c, rest := compared(text)
			s, _ := parseInstant(rest)
			for _, m := range []time.Time{s.from, s.to, s.from.Add(-1), s.to.Add(-1), s.from.AddDate(3, 0, 0)} {
				if some && written(m) && !asked.Since.After(m) && (asked.Before.IsZero() || m.Before(asked.Before)) && !holds(c, m, s) {
					t.Fatalf("%q and %q find %v", one, other, m)
				}
			}
		}
	})
}

// holds reports whether m is what the comparison with s asks for.
func holds(c comparison, m time.Time, s span) bool {
	switch c {
	case notBefore:
		return !m.Before(s.from)
	case notAfter:
		return m.Before(s.to)
	case after:
		return !m.Before(s.to)
	case before:
		return m.Before(s.from)
	}
	return !m.Before(s.from) && m.Before(s.to)
}
