package client

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		text, date string
		want       time.Duration
		ok         bool
	}{
		{"", "", 0, false},
		{"0", "", 0, true},
		{"7", "", 7 * time.Second, true},
		{"007", "", 7 * time.Second, true},
		{"-7", "", 0, false},
		{"+7", "", 0, false},
		{" 7", "", 0, false},
		{"7s", "", 0, false},
		{"1_0", "", 0, false},
		{"1.5", "", 0, false},
		{"99999999999", "", longestAdvice, true},
		{"99999999999999999999999999", "", longestAdvice, true},
		{at(time.Minute), "", time.Minute, true},
		{at(-time.Minute), "", 0, true},
		{at(time.Minute), at(50 * time.Second), 10 * time.Second, true}, // its clock is ahead
		{at(time.Minute), "yesterday", time.Minute, true},
		{at(1e6 * time.Hour), "", longestAdvice, true},
		{"Sunday", "", 0, false},
	} {
		h := http.Header{"Retry-After": {c.text}, "Date": {c.date}}
		if got, ok := retryAfter(h, now); got != c.want || ok != c.ok {
			t.Errorf("%q: %v %v, want %v %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "3", "-3", "3.5", "18446744073709551616", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "\x00"} {
		f.Add(s, "")
		f.Add(s, s)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text, date string) {
		d, ok := retryAfter(http.Header{"Retry-After": {text}, "Date": {date}}, now)
		if d < 0 || d > longestAdvice || !ok && d != 0 {
			t.Errorf("%v %v", d, ok)
		}
		if isDigits(text) && text != "" && len(text) <= 64 && !ok {
			t.Error("whole seconds are refused")
		}
	})
}
