package periodic

import (
	"math/bits"
	"time"
)

// Schedule is a set of instants, the same in all processes with the same zone database. Parse makes
// Schedules; the zero value is not valid.
type Schedule struct {
	every     time.Duration // of @every; zero: a cron expression
	loc       *time.Location
	sets      [len(fields)]set
	eitherDay bool // a day matches the day of month or the day of week, not both
}

// set has a bit for each value of a field.
type set uint64

func (s set) has(v int) bool { return s>>v&1 != 0 }

const everyHour set = 1<<24 - 1

const (
	// repeats is longer than the largest change of a zone's offset, a day.
	repeats = 48 * time.Hour
	// mostPeriods bounds a search: a zone has at most a few changes a year, and the rarest day,
	// February 29 on a given day of the week, comes within 40 years.
	mostPeriods = 1000
)

// Next returns the first instant after the given one. If a cron expression has every hour, a wall-clock
// time that occurs twice is two instants, and a wall-clock time that a change of the zone leaves out is
// none. In all other expressions a time that occurs twice counts once, at the first, and a time that is
// left out counts at the first instant after the gap, together with all others of that gap.
func (s Schedule) Next(after time.Time) time.Time {
	if s.every > 0 {
		return after.Truncate(s.every).Add(s.every).In(s.loc)
	}
	// Wall-clock times are kept as times in UTC. The search goes from one period between two changes
	// of the zone to the next. No two changes are so close that wall-clock times of both repeat.
	var reached time.Time    // the wall-clock time at the last change: earlier times have occurred
	t := after.Add(-repeats) // begin with the period before a change that is not long ago
	for range mostPeriods {
		_, seconds := t.In(s.loc).Zone()
		begin, end := t.In(s.loc).ZoneBounds()
		wall := func(t time.Time) time.Time { return t.UTC().Add(time.Duration(seconds) * time.Second) }
		from := reached
		if s.sets[hours] == everyHour {
			from = wall(begin)
		}
		if !after.Before(begin) {
			from = later(from, wall(after).Truncate(time.Minute).Add(time.Minute))
		}
		to := from.AddDate(400, 0, 0)
		if !end.IsZero() {
			to = wall(end)
		}
		if at, ok := s.first(from, to); ok {
			at = at.Add(-time.Duration(seconds) * time.Second)
			return later(at, begin).In(s.loc) // earlier than begin: left out
		}
		if end.IsZero() {
			break
		}
		reached, t = to, end
	}
	return time.Time{}
}

// latest returns the last instant after from and not after to, or the zero time if there is none.
func (s Schedule) latest(from, to time.Time) (at time.Time) {
	for step := time.Minute; ; step *= 2 { // the instants of a long time are many
		low := later(from, to.Add(-step))
		for next := s.Next(low); !next.After(to); next = s.Next(next) {
			at = next
		}
		if !at.IsZero() || low.Equal(from) {
			return at
		}
	}
}

// first returns the first matching wall-clock time that is not before from, if there is one before to.
func (s Schedule) first(from, to time.Time) (time.Time, bool) {
	t := from.Add(time.Minute - time.Nanosecond).Truncate(time.Minute)
	for t.Before(to) {
		year, month, day := t.Date()
		switch rest := s.sets[minutes] >> t.Minute(); {
		case !s.sets[months].has(int(month)):
			t = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case !s.onDay(t):
			t = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		case !s.sets[hours].has(t.Hour()) || rest == 0:
			t = time.Date(year, month, day, t.Hour()+1, 0, 0, 0, time.UTC)
		default:
			t = t.Add(time.Duration(bits.TrailingZeros64(uint64(rest))) * time.Minute)
			return t, t.Before(to)
		}
	}
	return time.Time{}, false
}

func (s Schedule) onDay(t time.Time) bool {
	inMonth, inWeek := s.sets[monthDays].has(t.Day()), s.sets[weekDays].has(int(t.Weekday()))
	if s.eitherDay {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
