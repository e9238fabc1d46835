package syntax

import (
	"strings"
	"time"
)

// ParseTime reads a date-time that a time.Time can hold. The year must also be valid in UTC,
// because the time may be kept and written in UTC, where there is no year 10000.
func ParseTime(text string) (t time.Time, ok bool) {
	if !timeForm(text) {
		return t, false
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	return t, err == nil && FitsRFC3339(t)
}

// timeForm reports whether text has the form of an RFC 3339 date-time. Package time differs: it
// accepts hours of one digit, commas, and offsets of a day and more, but no lower-case letters.
// timeForm leaves it to package time to check that the date and the time of day exist.
func timeForm(text string) bool {
	const form = "0000-00-00T00:00:00"
	if len(text) <= len(form) || !hasForm(text[:len(form)], form) {
		return false
	}
	zone := text[len(form):]
	if fraction, ok := strings.CutPrefix(zone, "."); ok {
		if zone = strings.TrimLeft(fraction, "0123456789"); len(zone) == len(fraction) {
			return false
		}
	}
	return zone == "Z" || zone == "z" || hasForm(zone, "+00:00") && zone[1:3] < "24" && zone[4:] < "60"
}

// hasForm compares text with a form. In the form 0 is any digit, + is any sign, and T may be
// lower-case in text.
func hasForm(text, form string) bool {
	if len(text) != len(form) {
		return false
	}
	for i := range len(form) {
		switch c := text[i]; form[i] {
		case '0':
			if c < '0' || c > '9' {
				return false
			}
		case '+':
			if c != '+' && c != '-' {
				return false
			}
		default:
			if c != form[i] && (form[i] != 'T' || c != 't') {
				return false
			}
		}
	}
	return true
}

// FitsRFC3339 reports whether RFC 3339 can write t, in its zone and in UTC.
func FitsRFC3339(t time.Time) bool {
	_, offset := t.Zone()
	year, utc := t.Year(), t.UTC().Year()
	return min(year, utc) >= 0 && max(year, utc) <= 9999 && -24*60*60 < offset && offset < 24*60*60
}

// isDateTime implements format=date-time. Unlike ParseTime, isDateTime accepts leap seconds: the last second
// of a month in UTC may have the number 60.
func isDateTime(text string) bool {
	const seconds = len("0000-00-00T00:00:")
	if !timeForm(text) {
		return false
	}
	text = strings.ToUpper(text)
	leap := text[seconds:seconds+2] == "60"
	if leap {
		text = text[:seconds] + "59" + text[seconds+2:]
	}
	t, err := time.Parse(time.RFC3339, text)
	next := t.UTC().Truncate(time.Second).Add(time.Second)
	return err == nil && (!leap || next.Day() == 1 && next.Hour() == 0 && next.Minute() == 0 && next.Second() == 0)
}
