package debugpage

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// The page showed "All is calm" while 1,220 requests were in flight in a dry run, and none of them
// was answered in time.
func TestThePageSaysThatAServiceIsDead(t *testing.T) {
	const rate = 1220
	for _, c := range []struct {
		name    string
		cfg     limiter.Config
		healthy time.Duration
		wants   []string
	}{
		{"a dry run from the start on", limiter.Config{Mode: limiter.DryRun}, 0, []string{
			": little ends in time.", "100 % of what ended of late was lost", "slots are in use and a limit would allow", "In flight 1,2",
			"100 % of it failed or lost", "What to do: Far more runs at once", "mode to enforce", "of what can be served",
			"Do not trust this estimate.", "The counts say nothing: enforce for all callers of one replica to find out.",
		}},
		{"a dry run after a while", limiter.Config{Mode: limiter.DryRun}, 5 * time.Second, []string{
			": little ends in time.", "In flight 1,2", "nothing ended in time as soon as it was saturated", "What to do: Far more runs at once", "Would be refused, by reason",
		}},
		{"enforcing", limiter.Config{Law: limit.NewFixed(5000)}, 5 * time.Second, []string{
			": little ends in time.", "100 % of what ended of late was lost", "What to do: What is admitted runs into its deadline",
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.cfg.Name = "orders"
			l, err := limiter.New(c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			page := New(l)
			text := func() string { return textOf(get(page, "/").Body.String()) }
			began := time.Now()
			offer := func(d time.Duration, work func(context.Context) error) {
				for until := time.Since(began) + d; time.Since(began) < until; {
					time.Sleep(time.Second / rate)
					go func() {
						ctx, cancel := context.WithTimeout(context.Background(), time.Second)
						defer cancel()
						_ = l.Do(ctx, work)
					}()
					if time.Since(began)%(2*time.Second) < time.Second/rate {
						text() // a reader looks at the page
					}
				}
			}
			alive := func(context.Context) error { time.Sleep(10 * time.Millisecond); return nil }
			if offer(c.healthy, alive); c.healthy > 0 {
				wants(t, text(), "All is calm.")
			}
			offer(5*time.Second, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			wants(t, text(), c.wants...)
			if offer(11*time.Second, alive); c.cfg.Mode == limiter.Enforce {
				wants(t, text(), "All is calm.")
			} else if got := text(); strings.Contains(got, "little ends in time") {
				t.Errorf("%s: work ends again, and: %s", c.name, got)
			}
			time.Sleep(5 * time.Second)
		})
	}
}
