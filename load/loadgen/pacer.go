package loadgen

import "time"

// fineSpan is the last part of a wait, slept precisely on platforms with a precise sleep. Timers
// fire up to a millisecond late: more than the gaps of a schedule.
const fineSpan = 1500 * time.Microsecond

// pacer waits for instants of a run. Only the goroutine that made it may use it.
type pacer struct {
	r     *run
	timer *time.Timer
	fine  func(time.Duration) // a precise sleep, which may end early; nil: timers only
}

func newPacer(r *run) *pacer {
	p := &pacer{r: r, timer: time.NewTimer(time.Hour)}
	p.timer.Stop()
	if !virtualClock() {
		p.fine = preciseSleep()
	}
	return p
}

// wait returns at the instant or shortly after it, with the time of its return. It returns false as
// soon as nothing may be sent any more.
func (p *pacer) wait(at time.Duration) (now time.Duration, ok bool) {
	for {
		if p.r.sending.Err() != nil {
			return now, false
		}
		now = p.r.now()
		left := at - now
		switch {
		case left <= 0:
			return now, true
		case p.fine != nil && left <= fineSpan:
			p.fine(left)
			continue
		case p.fine != nil:
			left -= fineSpan
		}
		p.timer.Reset(left)
		select {
		case <-p.timer.C:
		case <-p.r.sending.Done():
			p.timer.Stop()
		}
	}
}
