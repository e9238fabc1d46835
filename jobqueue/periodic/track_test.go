package periodic

import (
	"testing"
	"time"
)

// The entry is due at each full hour and may be ten minutes late.
func TestWhichInstantIsDue(t *testing.T) {
	type step struct {
		now    string // a time of the clock; "enqueued": the instant that was due is enqueued
		due    string // no longer due, or not yet: ""
		passed bool
		again  bool
	}
	for what, steps := range map[string][]step{
		"in time":                     {{now: "01:30"}, {now: "02:00", due: "02:00"}, {now: "enqueued"}, {now: "02:00"}, {now: "02:30"}, {now: "03:00", due: "03:00"}},
		"started in time":             {{now: "02:10", due: "02:00"}, {now: "enqueued"}, {now: "02:10"}},
		"started too late":            {{now: "02:11"}, {now: "03:00", due: "03:00"}},
		"as late as may be":           {{now: "01:30"}, {now: "02:10", due: "02:00"}},
		"too late":                    {{now: "01:30"}, {now: "02:11", passed: true}, {now: "02:12"}},
		"several, the last in time":   {{now: "01:30"}, {now: "05:01", due: "05:00", passed: true}},
		"several, all too late":       {{now: "01:30"}, {now: "05:30", passed: true}, {now: "05:31"}},
		"waits as long as it may":     {{now: "02:00", due: "02:00"}, {now: "02:10", due: "02:00"}, {now: "02:11", passed: true}, {now: "02:12"}},
		"waits, and the next is due":  {{now: "02:00", due: "02:00"}, {now: "03:05", due: "03:00", passed: true}},
		"waits, and the next is late": {{now: "02:00", due: "02:00"}, {now: "03:30", passed: true}},
		"set back behind an instant":  {{now: "02:00", due: "02:00"}, {now: "enqueued"}, {now: "01:59", again: true}, {now: "02:00", due: "02:00"}},
		"set back while one waits":    {{now: "02:00", due: "02:00"}, {now: "01:59", again: true}, {now: "02:01", due: "02:00"}},
		"set back between instants":   {{now: "02:50"}, {now: "02:01"}, {now: "02:02"}},
	} {
		var tr track
		for i, s := range steps {
			if s.now == "enqueued" {
				tr.due = time.Time{}
				continue
			}
			now := at(t, "2026-01-01T"+s.now+":00Z")
			var passed, again bool
			if i == 0 {
				tr = track{schedule: parsed(t, "@hourly", nil), catchUp: 10 * time.Minute}
				tr.start(now)
			} else {
				passed, again = tr.advance(now)
			}
			due := ""
			if !tr.due.IsZero() {
				due = tr.due.Format("15:04")
			}
			if due != s.due || passed != s.passed || again != s.again {
				t.Errorf("%s, at %s: due %q, passed %t, again %t, want %+v", what, s.now, due, passed, again, s)
			}
		}
	}
}
