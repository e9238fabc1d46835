package limiter

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

func TestALawThatTakesOverSeesOnlyWhatItAdmitted(t *testing.T) {
	l := configured(t, Config{Law: limit.NewFixed(10)})
	before := []Permit{acquire(t, l), acquire(t, l), acquire(t, l)}
	law := &told{Law: limit.NewFixed(10)}
	l.gate.SetLaw(law)
	after := acquire(t, l)
	for _, p := range []Permit{before[0], after, before[2]} {
		p.Done(nil)
	}
	if len(law.samples) != 1 || law.samples[0].Seq != 1 {
		t.Fatalf("%+v", law.samples)
	}
}

// clockwork is a law that checks the order of its times and numbers.
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
