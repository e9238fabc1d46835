// Package clock turns times of others into times of the monotonic clock.
package clock

import "time"

// Monotonic returns t with a monotonic reading. A t that has one is returned as t. Decoding,
// time.Unix and Round(0), among others, make times that have none; for such a t the result is as far
// from now as t is from the wall clock's time. Subtract a stored time from the result only: the wall
// clock may have been set since the other was read. Such a t costs two clock readings, other times
// none.
func Monotonic(t time.Time) time.Time {
	if t != t.Round(0) {
		return t
	}
	return time.Now().Add(time.Until(t))
}

// Virtual reports whether t, as time.Now has returned it, was read in a bubble of testing/synctest: only
// there does time.Now return a time without a monotonic reading.
func Virtual(t time.Time) bool { return t == t.Round(0) }
