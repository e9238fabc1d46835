package agents

import (
	"context"
	"time"
)

// watch takes what the agents measure until each has delivered or is lost.
func (c *coordinator) watch(ctx context.Context) (*Report, error) {
	c.roster = newRoster(len(c.agents), maxSilence, c.now())
	c.line = newTimeline(len(c.agents), c.cfg.Interval)
	c.texts = make([]collector, len(c.agents))
	for i := range c.clocks {
		c.watched = append(c.watched, watchedClock{first: c.clocks[i].truth()})
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	interrupted, overdue := ctx.Done(), (<-chan time.Time)(nil)
	for len(c.roster.running()) > 0 {
		select {
		case m := <-c.inbox:
			c.take(m)
		case <-look.C:
			// What is in the inbox was said before this look: a slow coordinator
			// must not take its own delay for silence.
			for waiting := len(c.inbox); waiting > 0; waiting-- {
				c.take(<-c.inbox)
			}
			for _, i := range c.roster.losses(c.now()) {
				c.lose(i, "it has been silent for longer than "+maxSilence.String())
			}
			if c.asked { // again: a message may be lost
				c.stop()
			}
		case <-interrupted:
			interrupted = nil
			c.stop()
		case <-overdue:
			for _, i := range c.roster.running() {
				c.lose(i, "it delivered no result after it was stopped")
			}
		}
		c.show()
		if c.asked && overdue == nil {
			overdue = time.After(stopTime)
		}
	}
	c.report.warn()
	return c.report, c.report.merge()
}

// take notes what an agent says.
func (c *coordinator) take(m incoming) {
	switch {
	case m.err != nil:
		c.cfg.Log(m.err.Error())
	case m.Beat != nil && c.hear(m.Beat.Index):
		c.compare(m.Beat, m.at)
	case m.Live != nil && c.hear(m.Live.Index):
		i := m.Live.Index
		c.line.add(i, m.Live.Snapshot)
		c.report.Agents[i].LastSent = m.Live.Snapshot.Sent
	case m.Done != nil && c.hear(m.Done.Index):
		refused := ""
		if err := c.deliver(m.Done); err != nil {
			refused = err.Error()
			c.lose(m.Done.Index, "its result cannot be read: "+refused)
		}
		m.reply(message{Answer: &answer{Refused: refused}}.encode())
	case m.Done != nil: // from one that was given up: it need not send it again
		m.reply(message{Answer: &answer{Refused: "this run goes on without you"}}.encode())
	}
}

func (c *coordinator) hear(i int) bool {
	if !c.roster.hear(i, c.now()) {
		return false
	}
	c.report.Agents[i].LastHeard = c.now() - c.startAt
	return true
}

// compare looks whether the clock of an agent goes as it did.
func (c *coordinator) compare(b *beat, at time.Duration) {
	if b.Echo == nil {
		return
	}
	w, a := &c.watched[b.Index], &c.report.Agents[b.Index]
	jump := w.see(at, between(time.Duration(b.Echo.Clock), time.Duration(b.Echo.Heard), time.Duration(b.Clock), at))
	a.ClockMoved = w.moved()
	if jump.Abs() > maxJump && a.Result == nil {
		c.report.invalidate("the clock of agent %d (%s) jumped by %v at least, %v after the start: what it sent then was not at its time", b.Index+1, a.Name, short(jump), short(max(at-c.startAt, 0)))
		if !c.asked {
			c.cfg.Log(c.report.Invalid)
			c.stop()
		}
	}
}

// deliver takes a part of an agent's result.
func (c *coordinator) deliver(d *done) error {
	a := &c.report.Agents[d.Index]
	if a.Result != nil {
		return nil // it was sent again
	}
	text, complete, err := c.texts[d.Index].add(d.Part)
	if err != nil || !complete {
		return err
	}
	var f figures
	if err := decodeStrictly(text, &f); err != nil {
		return err
	}
	if f.Result == nil {
		return errMessage
	}
	a.Result, a.CPU, a.PeakRSS, a.Sent, a.Received, a.FirstError = f.Result, f.CPU, f.PeakRSS, f.Sent, f.Received, f.FirstError
	a.LastSent = f.Result.Offered
	c.texts[d.Index] = collector{}
	c.roster.set(d.Index, delivered)
	c.line.end(d.Index)
	if f.Ended != "" && !c.asked {
		c.report.invalidate("agent %d (%s) ended before the load did: %s", d.Index+1, a.Name, f.Ended)
		c.stop()
	}
	return nil
}

// lose gives an agent up. The run is then not what was asked for, and the others stop.
func (c *coordinator) lose(i int, why string) {
	a := &c.report.Agents[i]
	a.Lost = why
	c.roster.set(i, lost)
	c.line.end(i)
	c.report.invalidate("agent %d (%s) was lost %v after the start: %s", i+1, a.Name, short(max(a.LastHeard, 0)), why)
	c.cfg.Log(c.report.Invalid)
	c.stop()
}

// stop tells all agents to stop.
func (c *coordinator) stop() {
	c.asked = true
	c.tell(message{Stop: &empty{}})
}

func (c *coordinator) show() {
	for step, ok := c.line.next(); ok; step, ok = c.line.next() {
		if c.cfg.Progress != nil {
			c.cfg.Progress(step)
		}
	}
}
