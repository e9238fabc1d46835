package client

import (
	"net/http"
	"strconv"
	"time"
)

// longestAdvice replaces longer advice, so that nothing overflows.
const longestAdvice = 365 * 24 * time.Hour

// retryAfter reads the Retry-After header of an answer: whole seconds, or a date. A date is
// compared with the server's own clock if the answer has a Date. False: no valid Retry-After.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if text == "" || len(text) > 64 {
		return 0, false
	}
	if text[0] >= '0' && text[0] <= '9' { // ParseUint reports a sign as an error too
		seconds, err := strconv.ParseUint(text, 10, 64)
		switch {
		case err == nil && seconds <= uint64(longestAdvice/time.Second):
			return time.Duration(seconds) * time.Second, true
		case err == nil || isDigits(text):
			return longestAdvice, true
		}
		return 0, false
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), longestAdvice), true
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
