package agents

import "time"

// clock is how far another process's clock is ahead of ours, by round trips. The answer
// came at some time within the trip, so the shortest trip knows best.
type clock struct {
	offset      time.Duration
	uncertainty time.Duration // the truth is within ± this
	known       bool
}

// add takes a round trip: when it began and ended by our clock, and what the other said.
func (c *clock) add(began, ended, other time.Duration) {
	half := (ended - began) / 2
	if ended < began || c.known && half >= c.uncertainty {
		return
	}
	*c = clock{other - (began + half), half, true}
}

// there is an instant of ours by the other clock.
func (c *clock) there(ours time.Duration) time.Duration { return ours + c.offset }

// truth is what is known of the offset.
func (c *clock) truth() span { return span{c.offset - c.uncertainty, c.offset + c.uncertainty} }

// span is where the offset of a clock is.
type span struct{ low, high time.Duration }

// between takes a round trip that waited at the other end: when it left and came back by
// our clock, and when it came and left by the other one.
func between(left, came, went, back time.Duration) span { return span{went - back, came - left} }

// off is by how much the truth was moved at least from s to other; zero if it may be the same.
func (s span) off(other span) time.Duration {
	switch {
	case other.low > s.high:
		return other.low - s.high
	case other.high < s.low:
		return other.high - s.low
	}
	return 0
}

// drift is more than a clock that works gains or loses: those of computers do a tenth of it.
const drift = 1e-3

// watchedClock finds out by many trips whether a clock goes on as it did. What is known
// of it gets worse with time, and better by short trips.
type watchedClock struct {
	first span // at the start
	last  span
	at    time.Duration
	known bool
}

// see takes what a trip that came back at that time says, and returns by how much the clock jumped
// at least since the one before.
func (w *watchedClock) see(at time.Duration, now span) (jump time.Duration) {
	if now.low > now.high { // it jumped ahead while the trip waited
		jump = now.low - now.high
		w.last, w.at, w.known = span{now.low, now.low + maxSilence}, at, true
		return jump
	}
	if !w.known {
		w.last, w.at, w.known = w.first, at, true
	}
	may := time.Duration(drift * float64(at-w.at))
	w.last.low, w.last.high, w.at = w.last.low-may, w.last.high+may, at
	if jump = w.last.off(now); jump != 0 {
		w.last = now
		return jump
	}
	w.last = span{max(w.last.low, now.low), min(w.last.high, now.high)}
	return 0
}

// moved is how far the clock is at least from where it was at the start.
func (w *watchedClock) moved() time.Duration {
	if !w.known {
		return 0
	}
	return w.first.off(w.last)
}
