package stories

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/admissionhttp/client"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
	"github.com/spillway-go/spillway/retrybudget"
)

const (
	clientCount = 200                    // clients, of which the next one sends the next request
	firstPause  = 100 * time.Millisecond // at most, before the second try; before the third twice that
	soon        = time.Second            // a critical request is answered well within that
)

// manners are how the clients of a story behave.
type manners struct {
	path     func(n uint64) string // of request n
	critical string                // the path of the critical requests; empty: none is
	patience time.Duration         // for an answer
	tries    int                   // of a request that was not answered
}

// crowd is the clients of a service.
type crowd struct {
	manners
	url        string
	callers    []caller
	began      time.Time
	all, vital *tally // of all requests, and of the critical ones
}

// caller is one client.
type caller struct {
	http.RoundTripper
	repeats func() bool // asked before every try but the first
}

// newCrowd is the clients of a service. Those of a protected one that try again have
// admissionhttp/client, and a budget that also pays for what they repeat themselves.
func newCrowd(m manners, url string, base http.RoundTripper, protected bool, load service.Load) (*crowd, error) {
	c := &crowd{manners: m, url: url, began: time.Now(), all: newTally(load), vital: newTally(load)}
	for range clientCount {
		one := caller{base, func() bool { return true }}
		if protected && m.tries > 1 {
			budget, err := retrybudget.New(retrybudget.Config{})
			if err != nil {
				return nil, err
			}
			t, err := client.New(client.Config{Base: base, Budget: budget})
			if err != nil {
				return nil, err
			}
			one = caller{t, budget.TryTake}
		}
		c.callers = append(c.callers, one)
	}
	return c, nil
}

// do sends request n.
func (c *crowd) do(ctx context.Context, n uint64, _ bool) loadgen.Outcome {
	sent, path := time.Since(c.began), c.path(n)
	outcome := c.request(ctx, c.callers[n%clientCount], path)
	c.all.add(sent, outcome == loadgen.OK)
	if path == c.critical {
		c.vital.add(sent, outcome == loadgen.OK && time.Since(c.began)-sent <= soon)
	}
	return outcome
}

// request tries until there is an answer. A refusal is one: the client's transport has
// decided whether it is asked again.
func (c *crowd) request(ctx context.Context, from caller, path string) loadgen.Outcome {
	for try := 1; ; try++ {
		outcome := c.try(ctx, from, path)
		if outcome == loadgen.OK || outcome == loadgen.Rejected || try >= c.tries || !from.repeats() {
			return outcome
		}
		most := firstPause << (try - 1)
		_ = service.Pause(ctx, most/2+rand.N(most/2)) // the next try fails at once if ctx has ended
	}
}

func (c *crowd) try(ctx context.Context, from caller, path string) loadgen.Outcome {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return loadgen.Error
	}
	outcome, _ := service.Ask(from, req)
	return outcome
}
