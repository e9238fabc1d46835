package admission

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp/client"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/loadgen"
)

// scene is one kind of crowd.
type scene struct {
	load     float64       // multiples of the capacity
	deadline time.Duration // of each request, its retries included
	retries  bool          // by client.Transport; else each request is sent once
	leavers  bool          // every third client leaves after half of the service time
	ramps    bool          // they come slowly
}

// clientCount is how many clients there are, each with a budget and a memory of its
// own.
const clientCount = 200

// crowd is the clients: an open loop, in which each request is the next client's.
type crowd struct {
	scene
	url        string
	patience   time.Duration // of those that leave
	base       *http.Transport
	transports []*client.Transport
	from, to   time.Time // the time in which answers count

	good                     atomic.Uint64 // answers in that time, to those that stay
	criticalSent, criticalOK atomic.Uint64 // of the requests sent in that time
	refused                  atomic.Uint64 // answers 503 and 429 that a client got in the end
}

func newCrowd(address string, s scene, work overload.Work) (*crowd, error) {
	c := &crowd{
		scene: s, url: "http://" + address + "/work", patience: (work.Min + work.Max) / 4,
		base: &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: 2000},
	}
	config := client.Config{Base: c.base}
	if !s.retries {
		config.Attempts, config.Tolerance = 1, math.Inf(1)
	}
	for range clientCount {
		t, err := client.New(config)
		if err != nil {
			return nil, err
		}
		c.transports = append(c.transports, t)
	}
	return c, nil
}

// priorityOf gives every client a fifth of critical and a fifth of low requests.
func priorityOf(n uint64) spillway.Priority {
	switch (n/clientCount + n) % 5 {
	case 0:
		return spillway.Critical
	case 1:
		return spillway.Low
	}
	return spillway.Normal
}

// leaves reports whether request n is of a client that leaves.
func (c *crowd) leaves(n uint64) bool { return c.leavers && n%clientCount%3 == 0 }

// Do implements loadgen.Target.
func (c *crowd) Do(ctx context.Context, n uint64) loadgen.Outcome {
	sent, p := time.Now(), priorityOf(n)
	counts := !c.leaves(n) && !sent.Before(c.from) && sent.Before(c.to)
	ctx, cancel := context.WithTimeout(spillway.WithPriority(ctx, p), c.deadline)
	defer cancel()
	if c.leaves(n) {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx) // the server is told the deadline only
		defer leave()
		defer time.AfterFunc(c.patience, leave).Stop()
	}
	outcome := c.send(ctx, c.transports[n%clientCount])
	if end := time.Now(); outcome == loadgen.OK && !c.leaves(n) && !end.Before(c.from) && end.Before(c.to) {
		c.good.Add(1)
	}
	if counts && p == spillway.Critical {
		c.criticalSent.Add(1)
		if outcome == loadgen.OK {
			c.criticalOK.Add(1)
		}
	}
	return outcome
}

func (c *crowd) send(ctx context.Context, t *client.Transport) loadgen.Outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return loadgen.Error
	}
	req.Header.Set("Authorization", credential)
	resp, err := t.RoundTrip(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
	}
	switch {
	case errors.Is(err, spillway.ErrRejected): // by the client itself
		return loadgen.Rejected
	case ctx.Err() != nil:
		return loadgen.Timeout
	case err != nil:
		return loadgen.Error
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return loadgen.OK
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		c.refused.Add(1)
		return loadgen.Rejected
	case http.StatusGatewayTimeout:
		return loadgen.Timeout
	}
	return loadgen.Error
}

// stats is the sum over all clients.
func (c *crowd) stats() (sum client.Stats) {
	for _, t := range c.transports {
		s := t.Stats()
		sum.Requests += s.Requests
		sum.Retries += s.Retries
		sum.Throttled += s.Throttled
		sum.Unpaid += s.Unpaid
	}
	return sum
}

// tail is how long the load goes on after the measurement, so that what was sent
// within it meets the same storm when it is retried.
const tail = 2 * time.Second

// stretch is a part of the load.
type stretch struct {
	load float64 // multiples of the capacity
	d    time.Duration
}

// stretches are the warm-up, the measurement and the tail. A crowd that ramps comes
// slowly, over four times the warm-up: an estimate that is made without refusing
// anything needs to have seen the backend calm.
func (s scene) stretches(warm, measure time.Duration) (all []stretch) {
	const steps, calm = 10, .3
	if s.ramps {
		for i := range steps {
			all = append(all, stretch{calm + (s.load-calm)*float64(i)/steps, 4 * warm / steps})
		}
	} else {
		all = append(all, stretch{s.load, warm})
	}
	return append(all, stretch{s.load, measure}, stretch{s.load, tail})
}

// storm sends one continuous stream. It returns the result of the measurement.
func (c *crowd) storm(ctx context.Context, capacity float64, parts []stretch, seed uint64) (*loadgen.Result, error) {
	measured := len(parts) - 2
	c.from = time.Now()
	for _, p := range parts[:measured] {
		c.from = c.from.Add(p.d)
	}
	c.to = c.from.Add(parts[measured].d)
	type ended struct {
		res *loadgen.Result
		err error
	}
	done := make([]chan ended, len(parts))
	for i, p := range parts {
		done[i] = make(chan ended, 1)
		first := uint64(i) * 100_000 // another stretch of the clients' requests
		target := loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome { return c.Do(ctx, first+n) })
		go func() {
			res, err := loadgen.Run(ctx, loadgen.Config{Target: target, Open: loadgen.Poisson(p.load*capacity, p.d, seed+uint64(i)), Interval: step})
			done[i] <- ended{res, err}
		}()
		select {
		case <-time.After(p.d): // its last answers come later
		case <-ctx.Done():
		}
	}
	var res *loadgen.Result
	var failed error
	for i := range parts {
		e := <-done[i]
		failed = errors.Join(failed, e.err)
		if i == measured {
			res = e.res
		}
	}
	c.base.CloseIdleConnections()
	return res, failed
}
