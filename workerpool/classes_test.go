package workerpool

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// classed is a law that records the class of each job.
type classed struct {
	limit.Law
	t         *testing.T
	latest    uint8
	running   [limit.Classes]int
	forgotten int
}

func (c *classed) Admit(_ time.Duration, load limit.Load) {
	c.latest = load.Class
	c.running[load.Class]++
}

func (c *classed) Observe(s limit.Sample, _ limit.Load) { c.running[s.Class]-- }

func (c *classed) Forget(class uint8) {
	c.forgotten++
	if n := c.running[class]; n != 0 {
		c.t.Errorf("class %d is that of other jobs now, and %d of it run", class, n)
	}
}

func TestTheSubmittersContextSaysTheKindOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := &classed{Law: limit.NewFixed(1), t: t}
		p := pool(t, Config{Law: law})
		of := func(ctx context.Context) uint8 {
			if _, err := Do(ctx, p, func(context.Context) (int, error) { return 0, nil }); err != nil {
				t.Fatal(err)
			}
			return law.latest
		}
		ctx := t.Context()
		none, mail, image := of(ctx), of(spillway.WithKind(ctx, "mail")), of(spillway.WithKind(ctx, "image"))
		if none == mail || none == image || mail == image {
			t.Errorf("kinds are one: %d, %d, %d", none, mail, image)
		}
		if of(ctx) != none || of(spillway.WithKind(ctx, "mail")) != mail {
			t.Error("a kind is two")
		}
		if urgent := of(spillway.WithPriority(spillway.WithKind(ctx, "mail"), spillway.High)); urgent == mail {
			t.Error("a kind of two priorities is one")
		}
		if urgent := of(spillway.WithPriority(ctx, spillway.High)); urgent == none {
			t.Error("jobs of two priorities that say nothing are one kind")
		}
	})
}

// The number of names is unbounded, and some names become frequent later.
func TestAPoolTellsTheMostFrequentKindsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := &classed{Law: limit.NewFixed(4), t: t}
		p := pool(t, Config{Law: law})
		wait := func(context.Context) error { time.Sleep(time.Millisecond); return nil }
		for i := range 10_000 {
			kind := fmt.Sprint("made up ", i)
			if i%3 == 0 {
				kind = fmt.Sprint("kind ", i/2000)
			}
			noError(t, p.Submit(spillway.WithKind(t.Context(), kind), wait))
			time.Sleep(time.Millisecond)
		}
		if law.forgotten < 4 {
			t.Errorf("%d kinds have taken the place of another", law.forgotten)
		}
	})
}
