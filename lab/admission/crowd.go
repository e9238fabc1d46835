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
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// scene is one kind of crowd.
type scene struct {
	multiple float64       // of the capacity, sent by all
	deadline time.Duration // of each request, its retries included
	retries  bool          // by client.Transport; else each request is sent once
	leavers  bool          // every third client leaves after half of the service time
	ramps    bool          // they come slowly
}

var scenes = map[string]scene{
	storm:   {multiple: 3, deadline: 5 * time.Second, retries: true},
	leavers: {multiple: 3, deadline: 5 * time.Second, retries: true, leavers: true},
	dryrun:  {multiple: 2, deadline: time.Second, ramps: true},
}

// tail is how long the load goes on after the measurement, or as long as that was, so
// that what was sent within it meets the same storm when it is retried.
const tail = 2 * time.Second

// load is the warm-up, the measurement and the tail. A crowd that ramps comes slowly, over
// four times the warm-up: an estimate that is made without refusing anything needs to
// have seen the backend calm.
func (s scene) load(c Config) service.Load {
	const steps, least = 10, .3
	capacity := c.Work.Capacity()
	full := s.multiple * capacity
	warm := []service.Stretch{{Rate: full, For: c.WarmUp}}
	if s.ramps {
		warm = nil
		for i := range steps {
			warm = append(warm, service.Stretch{Rate: (least + (s.multiple-least)*float64(i)/steps) * capacity, For: 4 * c.WarmUp / steps})
		}
	}
	return service.Load{Measured: len(warm), Stretches: append(warm, service.Stretch{Rate: full, For: c.Time}, service.Stretch{Rate: full, For: min(tail, c.Time)})}
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
	criticalSent, criticalOK atomic.Uint64 // of the requests that count
	refused                  atomic.Uint64 // answers 503 and 429 that a client got in the end
}

func newCrowd(address string, s scene, work service.Work) (*crowd, error) {
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

// storm sends the load and returns the result of the measurement.
func (c *crowd) storm(ctx context.Context, load service.Load) (*loadgen.Result, error) {
	c.from, c.to = load.Window()
	defer c.base.CloseIdleConnections()
	return load.Send(ctx, c.do)
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

func (c *crowd) do(ctx context.Context, n uint64, counts bool) loadgen.Outcome {
	p, leaves := priorityOf(n), c.leaves(n)
	ctx, cancel := context.WithTimeout(spillway.WithPriority(ctx, p), c.deadline)
	defer cancel()
	if leaves {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx) // the server is told the deadline only
		defer leave()
		defer time.AfterFunc(c.patience, leave).Stop()
	}
	outcome := c.send(ctx, c.transports[n%clientCount])
	ok := outcome == loadgen.OK && !leaves
	if end := time.Now(); ok && !end.Before(c.from) && end.Before(c.to) {
		c.good.Add(1)
	}
	if counts && !leaves && p == spillway.Critical {
		c.criticalSent.Add(1)
		if ok {
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
