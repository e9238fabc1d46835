package fhir

import (
	"regexp"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// span is what a date or an instant means that is as precise as it was written: from
// its first moment, included, to its last, excluded.
type span struct{ from, to time.Time }

// Forms of dates and instants, and how long each is. A moment without a zone would mean
// something else to each reader, so that one is needed.
var (
	dateForms = []struct {
		layout              string
		years, months, days int
	}{{"2006", 1, 0, 0}, {"2006-01", 0, 1, 0}, {time.DateOnly, 0, 0, 1}}

	instantForms = []struct {
		layout string
		length time.Duration
	}{{"2006-01-02T15:04Z07:00", time.Minute}, {time.RFC3339, time.Second}}
)

// moment is how FHIR writes a dateTime that has a time, whose seconds are optional here.
var moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]((0\d|1[0-3]):[0-5]\d|14:00))$`)

// parseDate reads a year, a month or a day.
func parseDate(text string) (span, bool) {
	for _, f := range dateForms {
		if len(text) == len(f.layout) {
			t, err := time.Parse(f.layout, text)
			return span{t, t.AddDate(f.years, f.months, f.days)}, err == nil && written(t)
		}
	}
	return span{}, false
}

// unescaped returns moments with the plus sign of a zone that was not escaped in a URL or a
// form, and has become a space.
func unescaped(moments []string) []string {
	plus := make([]string, len(moments))
	for i, text := range moments {
		plus[i] = text
		if at := len(text) - len(" 00:00"); at > 0 && text[at] == ' ' {
			plus[i] = text[:at] + "+" + text[at+1:]
		}
	}
	return plus
}

// parseInstant reads what parseDate reads, or a moment with a zone: to the minute, to
// the second, or to a part of it. The plus sign of the zone may have become a space.
func parseInstant(text string) (span, bool) {
	if s, ok := parseDate(text); ok {
		return s, true
	}
	text = unescaped([]string{text})[0]
	if !moment.MatchString(text) { // package time takes more than FHIR writes
		return span{}, false
	}
	for _, f := range instantForms {
		t, err := time.Parse(f.layout, text)
		if t = t.UTC(); err != nil || !written(t) {
			continue
		}
		length := f.length
		if _, rest, parts := strings.Cut(text, "."); parts { // the layout takes them unasked
			for digits := 0; digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9'; digits++ {
				length = max(length/10, 1)
			}
		}
		return span{t, t.Add(length)}, true
	}
	return span{}, false
}

// comparison is a prefix of a value: which moments it asks for, beside the span.
type comparison string

const (
	equal     comparison = "eq"
	notBefore comparison = "ge"
	notAfter  comparison = "le"
	after     comparison = "gt"
	before    comparison = "lt"
)

// compared splits the prefix off; without one it is equal. Others than these are left
// where they are, and are no date then.
func compared(text string) (comparison, string) {
	for _, c := range []comparison{equal, notBefore, notAfter, after, before} {
		if rest, ok := strings.CutPrefix(text, string(c)); ok {
			return c, rest
		}
	}
	return equal, text
}

// written reports whether t, in UTC, has a year that FHIR can write.
func written(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

// asks returns the moments that the comparison asks for; a zero end is open. It is false
// where there are none: nothing is before the year 1, or after 9999.
func (s span) asks(c comparison) (t patientapi.Times, some bool) {
	switch some = true; c {
	case notBefore:
		t.Since = s.from
	case notAfter:
		t.Before = s.to
	case after:
		t.Since, some = s.to, written(s.to)
	case before:
		t.Before, some = s.from, !s.from.IsZero()
	default:
		t.Since, t.Before = s.from, s.to
	}
	if !written(t.Before) {
		t.Before = time.Time{}
	}
	return t, some
}

// both returns the moments that are in a and in b; false if there are none.
func both(a, b patientapi.Times) (patientapi.Times, bool) {
	if b.Since.After(a.Since) {
		a.Since = b.Since
	}
	if a.Before.IsZero() || !b.Before.IsZero() && b.Before.Before(a.Before) {
		a.Before = b.Before
	}
	return a, a.Before.IsZero() || a.Since.Before(a.Before)
}

// between returns the moments that all values ask for; ok is false where one cannot be
// read, and some where no moment is left.
func between(values []string, parse func(string) (span, bool)) (t patientapi.Times, some, ok bool) {
	some = true
	for _, value := range values {
		if value == "" { // FHIR has parameters without a value ignored
			continue
		}
		c, text := compared(value)
		s, ok := parse(text)
		if !ok {
			return t, false, false
		}
		asked, any := s.asks(c)
		if !any {
			some = false
			continue
		}
		var rest bool
		t, rest = both(t, asked)
		some = some && rest
	}
	return t, some, true
}

// days returns the days of those moments, which begin and end with a day.
func days(t patientapi.Times) (d patientapi.Dates) {
	if !t.Since.IsZero() {
		d.First = t.Since.Format(time.DateOnly)
	}
	if !t.Before.IsZero() {
		d.Last = t.Before.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	return d
}
