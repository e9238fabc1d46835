package periodic

import "time"

// track follows the instants of an entry. Callers pass in the time.
type track struct {
	schedule Schedule
	catchUp  time.Duration
	seen     time.Time // the time of the last call
	due      time.Time // the instant whose job is to be enqueued; zero: none
}

// start makes the latest instant due unless it is too old.
func (t *track) start(now time.Time) {
	t.seen, t.due = now, t.schedule.latest(now.Add(-t.catchUp-1), now)
}

// advance makes the latest instant since the last call due. passed reports that this process enqueues
// nothing for an earlier one: a later one came, or it is too old. again reports that the clock was set
// back, so that instants come again.
func (t *track) advance(now time.Time) (passed, again bool) {
	if now.Before(t.seen) {
		again = !t.schedule.Next(now).After(t.seen)
		t.seen, t.due = now, time.Time{}
		return false, again
	}
	oldest := now.Add(-t.catchUp)
	if first := t.schedule.Next(t.seen); !first.After(now) {
		waits := !t.due.IsZero()
		t.due = t.schedule.latest(later(t.seen, oldest.Add(-1)), now)
		passed = waits || !t.due.Equal(first)
	} else if !t.due.IsZero() && t.due.Before(oldest) {
		passed, t.due = true, time.Time{}
	}
	t.seen = now
	return passed, false
}
