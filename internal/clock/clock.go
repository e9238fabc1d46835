// Package clock tells times of the monotonic clock from virtual ones.
package clock

import "time"

// Virtual reports whether t, as time.Now has returned it, was read in a bubble of testing/synctest: only
// there does time.Now return a time without a monotonic reading.
func Virtual(t time.Time) bool { return t == t.Round(0) }
