package limiter

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

func TestALawThatTakesOverSeesOnlyWhatItAdmitted(t *testing.T) {
	g := govern(nil, DryRun, 0)
	for range 3 {
		g.Admit(0, limit.Load{})
	}
	g.setMode(0, DryRun, Enforce)
	law := &told{Law: limit.NewFixed(1)}
	g.Law = law
	g.Admit(0, limit.Load{})
	for _, seq := range []uint64{2, 4, 3} {
		g.Observe(limit.Sample{Seq: seq}, limit.Load{})
	}
	if len(law.samples) != 1 || law.samples[0].Seq != 1 {
		t.Fatalf("%+v", law.samples)
	}
}

// clockwork is a law that checks the contract of its times and numbers.
type clockwork struct {
	limit.Law
	t    *testing.T
	last time.Duration
	seq  uint64
}

func (c *clockwork) at(now time.Duration) {
	if now < c.last {
		c.t.Errorf("time goes back from %v to %v", c.last, now)
	}
	c.last = now
}

func (c *clockwork) Admit(at time.Duration, _ limit.Load) {
	c.at(at)
	c.seq++
}

func (c *clockwork) Observe(s limit.Sample, _ limit.Load) {
	c.at(s.End)
	if s.Seq == 0 || s.Seq > c.seq || s.Start > s.End {
		c.t.Errorf("after %d admissions: %+v", c.seq, s)
	}
}
