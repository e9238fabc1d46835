package fleet

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/admissionhttp/client"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
	"github.com/spillway-go/spillway/retrybudget"
)

// crowd is the clients, and the balancer between them and the replicas.
type crowd struct {
	base     *http.Transport
	to       http.RoundTripper
	urls     []string
	open     []atomic.Int64        // requests that each replica has not answered
	budgets  []*retrybudget.Budget // of the clients; none: they pay for nothing
	random   func(n int64) int64   // from 0 to less than n
	began    time.Time
	came, ok []atomic.Uint32 // clients that came, and that were answered well, in each step
}

func newCrowd(addresses []string, j job) (*crowd, error) {
	steps := int((j.length()+(tries+1)*patience)/service.Step) + 1
	c := &crowd{
		base: &http.Transport{MaxIdleConnsPerHost: 2000}, open: make([]atomic.Int64, len(addresses)), random: rand.Int64N, began: time.Now(),
		came: make([]atomic.Uint32, steps), ok: make([]atomic.Uint32, steps),
	}
	c.to = c.base
	for _, a := range addresses {
		c.urls = append(c.urls, "http://"+a+"/")
	}
	for range clients {
		if !j.Protected {
			break
		}
		b, err := retrybudget.New(retrybudget.Config{Ratio: ratio})
		if err != nil {
			return nil, err
		}
		c.budgets = append(c.budgets, b)
	}
	return c, nil
}

func (c *crowd) count(of []atomic.Uint32) {
	of[min(int(time.Since(c.began)/service.Step), len(of)-1)].Add(1)
}

// answered is the good answers between two times as a share of the clients that came then.
func (c *crowd) answered(from, to time.Duration) float64 {
	var came, ok uint32
	for i := int(from / service.Step); i < int(to/service.Step); i++ {
		came, ok = came+c.came[i].Load(), ok+c.ok[i].Load()
	}
	if came == 0 {
		return 1
	}
	return float64(ok) / float64(came)
}

// do sends request n, up to three times.
func (c *crowd) do(ctx context.Context, n uint64, _ bool) loadgen.Outcome {
	c.count(c.came)
	for try := 1; ; try++ {
		outcome := c.try(ctx)
		if outcome == loadgen.OK {
			c.count(c.ok)
			if c.budgets != nil {
				c.budgets[n%clients].Success()
			}
			return outcome
		}
		if try == tries || c.budgets != nil && !c.budgets[n%clients].TryTake() {
			return outcome
		}
		most := backoff << (try - 1)
		if service.Pause(ctx, most/2+time.Duration(c.random(int64(most/2)))) != nil {
			return outcome
		}
	}
}

// try asks the better of two random replicas.
func (c *crowd) try(ctx context.Context) loadgen.Outcome {
	i, j := c.random(int64(len(c.urls))), c.random(int64(len(c.urls)-1))
	if j >= i {
		j++
	}
	if c.open[j].Load() < c.open[i].Load() {
		i = j
	}
	c.open[i].Add(1)
	defer c.open[i].Add(-1)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.urls[i], nil)
	if err != nil {
		return loadgen.Error
	}
	req.Header.Set(client.DeadlineHeader, strconv.FormatInt(patience.Milliseconds(), 10))
	outcome, _ := service.Ask(c.to, req)
	return outcome
}
