package overload

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp/client"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/retrybudget"
)

// targets are what sends the stretches of a load.
func (t *trial) targets(load service.Load) (all []loadgen.Target, err error) {
	if t.scene.manners != nil {
		base := &http.Transport{MaxIdleConnsPerHost: 2000}
		context.AfterFunc(t.srv.Loading, base.CloseIdleConnections)
		if t.crowd, err = newCrowd(t.scene.manners(t), t.url, base); err != nil {
			return nil, err
		}
		return t.crowd.targets(load), nil
	}
	parts, err := t.parts()
	for i := 0; err == nil && i < len(load.Stretches); i++ {
		var target loadgen.Target
		target, err = loadgen.Mix(load.Seed+uint64(i), parts...)
		all = append(all, target)
	}
	return all, err
}

// parts are the kinds of requests of the scene. An answer after its deadline is a timeout.
func (t *trial) parts() (all []loadgen.Part, err error) {
	for _, k := range t.scene.kinds {
		target, err := t.sender(k)
		if err != nil {
			return nil, err
		}
		t.https = append(t.https, target)
		all = append(all, loadgen.Part{Class: k.name, Weight: float64(k.parts), Target: inTime(target, k.deadline)})
	}
	return all, nil
}

func (t *trial) sender(k kind) (*loadgen.HTTP, error) {
	header := http.Header{}
	if k.told {
		header = service.Deadline(k.deadline)
	}
	for name, value := range k.header {
		header.Set(name, value)
	}
	if t.scene.does == Patients {
		return service.Patients(t.url, header, patientOf, &t.foreign)
	}
	path := k.path
	if k.length > 0 {
		path = sumsPath(t.size.rows, k.length)
	}
	return loadgen.NewHTTP(loadgen.HTTPConfig{URL: t.url + path, Header: header, Timeout: k.deadline + patience})
}

// inTurn is the mix without chance: of each round every kind has its part.
func (t *trial) inTurn() (loadgen.Target, error) {
	parts, err := t.parts()
	if err != nil {
		return nil, err
	}
	return rounds(parts), nil
}

func rounds(parts []loadgen.Part) loadgen.Target {
	var round []loadgen.Target
	for _, p := range parts {
		for range int(p.Weight) {
			round = append(round, p.Target)
		}
	}
	return loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		const step = 7 // has no divisor in common with the length of a round, so that the long ones lie apart
		return round[n*step%uint64(len(round))].Do(ctx, n)
	})
}

// inTime makes each answer after the deadline a timeout, whatever it says. A refusal stays one.
func inTime(target loadgen.Target, deadline time.Duration) loadgen.Target {
	return loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		ctx, cancel := context.WithTimeout(ctx, deadline+patience)
		defer cancel()
		sent := time.Now()
		outcome := target.Do(ctx, n)
		if outcome != loadgen.Rejected && time.Since(sent) >= deadline {
			outcome = loadgen.Timeout
		}
		return outcome
	})
}

const (
	clientCount = 200                    // clients of a crowd, of which the next one sends the next request
	firstPause  = 100 * time.Millisecond // at most, before the second try; before the third twice that
)

// manners are how the clients of a crowd behave.
type manners struct {
	path     func(n uint64) string            // of request n; nil: "/work"
	priority func(n uint64) spillway.Priority // of request n, which the service is told; nil: none
	patience time.Duration                    // for an answer, with what admissionhttp/client retries
	leaves   time.Duration                    // after which every third client is gone; 0: none is
	tries    int                              // of a request that was not answered, by the client itself
	aware    bool                             // the clients have admissionhttp/client, whose budget also pays for their own tries
	once     bool                             // which sends each request once
}

// crowd is the clients of a service, each with a budget and a memory of its own.
type crowd struct {
	manners
	url     string
	callers []caller
	began   time.Time

	mu   sync.Mutex
	sent []request
}

// request is one request of a crowd, and what became of it.
type request struct {
	path        string
	priority    spillway.Priority
	counts      bool
	leaves      bool // its client does not wait for the answer
	sent, ended time.Duration
	outcome     loadgen.Outcome
	shed        bool // the service refused it in the end
}

func (r request) good() bool { return r.outcome == loadgen.OK && !r.leaves }

// caller is one client.
type caller struct {
	http.RoundTripper
	repeats func() bool // asked before every try but the first
	retries func() uint64
}

func newCrowd(m manners, url string, base http.RoundTripper) (*crowd, error) {
	c := &crowd{manners: m, url: url, began: time.Now()}
	if c.path == nil {
		c.path = func(uint64) string { return "/work" }
	}
	for range clientCount {
		one := caller{base, func() bool { return true }, func() uint64 { return 0 }}
		if m.aware {
			budget, err := retrybudget.New(retrybudget.Config{})
			if err != nil {
				return nil, err
			}
			config := client.Config{Base: base, Budget: budget}
			if m.once {
				config.Attempts, config.Tolerance = 1, math.Inf(1)
			}
			t, err := client.New(config)
			if err != nil {
				return nil, err
			}
			one = caller{t, budget.TryTake, func() uint64 { return t.Stats().Retries }}
		}
		c.callers = append(c.callers, one)
	}
	return c, nil
}

func (c *crowd) targets(load service.Load) (all []loadgen.Target) {
	for i := range load.Stretches {
		all = append(all, loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
			return c.do(ctx, uint64(i)<<32+n, i == load.Measured)
		}))
	}
	return all
}

// do sends request n.
func (c *crowd) do(ctx context.Context, n uint64, counts bool) loadgen.Outcome {
	r := request{path: c.path(n), counts: counts, sent: time.Since(c.began), leaves: c.leaves > 0 && n%clientCount%3 == 0}
	if c.priority != nil {
		r.priority = c.priority(n)
		ctx = spillway.WithPriority(ctx, r.priority)
	}
	r.outcome, r.shed = c.request(ctx, c.callers[n%clientCount], r)
	r.ended = time.Since(c.began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, r)
	return r.outcome
}

// request tries until there is an answer. A refusal is one: the client's transport has
// decided whether it is asked again.
func (c *crowd) request(ctx context.Context, from caller, r request) (outcome loadgen.Outcome, shed bool) {
	for try := 1; ; try++ {
		outcome, shed = c.try(ctx, from, r)
		if outcome == loadgen.OK || outcome == loadgen.Rejected || try >= c.tries || !from.repeats() {
			return outcome, shed
		}
		most := firstPause << (try - 1)
		_ = service.Pause(ctx, most/2+rand.N(most/2)) // the next try fails at once if ctx has ended
	}
}

func (c *crowd) try(ctx context.Context, from caller, r request) (outcome loadgen.Outcome, shed bool) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if r.leaves {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx) // the service is told the patience only
		defer leave()
		defer time.AfterFunc(c.leaves, leave).Stop()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+r.path, nil)
	if err != nil {
		return loadgen.Error, false
	}
	req.Header.Set("Authorization", credential)
	return service.Ask(from, req)
}

// share is how many of the requests that were sent in that time were answered well, in per cent; NaN
// if none was sent.
func (c *crowd) share(from, to time.Duration, good func(request) bool) float64 {
	var sent, answered float64
	for _, r := range c.sent {
		if r.sent >= from && r.sent < to {
			sent++
			if good(r) {
				answered++
			}
		}
	}
	if sent == 0 {
		return math.NaN()
	}
	return 100 * answered / sent
}

// of is the crowd's requests for which ok is true.
func (c *crowd) of(ok func(request) bool) *crowd {
	return &crowd{sent: slices.DeleteFunc(slices.Clone(c.sent), func(r request) bool { return !ok(r) })}
}

// recovered is the end of the first step from which on so large a share of the requests of
// a second is answered well. If there is none, it is the end of everything.
func (c *crowd) recovered(share float64, end time.Duration) (at time.Duration, ever bool) {
	for at := time.Duration(0); at+time.Second <= end; at += service.Step {
		if c.share(at, at+time.Second, request.good) >= share {
			return at + service.Step, true
		}
	}
	return end, false
}
