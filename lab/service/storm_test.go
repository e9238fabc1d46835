package service

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/retrybudget"
)

// A storm is a fleet at half of its capacity, whose databases are five times slower for some
// seconds, while clients retry. The protected fleet has admissionhttp with limiter.Config{}, and
// its clients have retry budgets.
type storm struct {
	Protected bool
	Seed      uint64
}

const (
	stormReplicas = 4
	stormClients  = 200 // that send in turn
	stormTries    = 3
	patience      = time.Second
	backoff       = 100 * time.Millisecond // at most, before the second try; twice that before the third
	ratio         = .1                     // retries that a success pays for
	slower        = 5                      // times, that a database is in the trouble

	troubleFrom = 4 * time.Second
	troubleTo   = 12 * time.Second
	settled     = troubleTo + 5*time.Second // when the protected fleet has to be back
	stormEnd    = 22 * time.Second
)

var stormWork = Work{Slots: 10, Min: 20 * time.Millisecond, Max: 60 * time.Millisecond}

// shares are the clients that are answered before, during and after the trouble, in per cent.
type shares [3]float64

func sharesOf(answered func(from, to time.Duration) float64) shares {
	return shares{100 * answered(troubleFrom/2, troubleFrom), 100 * answered(troubleFrom, troubleTo), 100 * answered(settled, stormEnd)}
}

func (s *shares) add(other shares, parts float64) {
	for i := range s {
		s[i] += other[i] / parts
	}
}

// simulated is what the simulator says: the mean of ten storms with random draws of their own.
func (s storm) simulated(t *testing.T) (mean shares) {
	t.Helper()
	const draws = 10
	for n := range uint64(draws) {
		sc := sim.Scenario{
			Seed: s.Seed + n, Duration: stormEnd, Record: sim.Record{Interval: Step},
			Classes: []sim.Class{{Deadline: patience, Service: sim.Uniform(stormWork.Min, stormWork.Max)}},
			Backend: sim.Degrading(stormWork.Slots, .5),
			Policy:  sim.Unlimited(),
			Fleet:   sim.Fleet{Replicas: stormReplicas, Balancer: sim.PowerOfTwo},
			Retry:   sim.Retry{Attempts: stormTries, Backoff: backoff, Clients: stormClients},
			Changes: []sim.Change{{At: troubleFrom, Speed: 1. / slower}, {At: troubleTo, Speed: 1}},
		}
		sc.Arrivals = sim.Poisson(sc.Capacity() / 2)
		if s.Protected {
			sc.Policy, sc.Retry.Budget = sim.Policy{}, ratio
		}
		r, err := sim.RunContext(t.Context(), sc)
		if err != nil {
			t.Fatal(err)
		}
		mean.add(sharesOf(r.Answered), draws)
	}
	return mean
}

// replica is the handler of one replica, and what ends it. The trouble is counted from its first
// request.
func (s storm) replica(index int) (handler http.Handler, end func(), err error) {
	store := NewDatabase(stormWork, s.Seed+uint64(index)<<32)
	begin := sync.OnceFunc(func() {
		time.AfterFunc(troubleFrom, func() { store.Slow(slower) })
		time.AfterFunc(troubleTo, func() { store.Slow(1) })
	})
	handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := store.Ask(r.Context()); err != nil {
			http.Error(w, "too late", http.StatusGatewayTimeout)
			return
		}
		_, _ = io.WriteString(w, "done\n")
	})
	end = func() {}
	if s.Protected {
		lim, err := limiter.New(limiter.Config{})
		if err != nil {
			return nil, nil, err
		}
		admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
		if err != nil {
			return nil, nil, err
		}
		handler, end = admit(handler), lim.Close
	}
	ask := handler
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin()
		ask.ServeHTTP(w, r)
	}), end, nil
}

// crowd is the clients, and the balancer between them and the replicas.
type crowd struct {
	to       http.RoundTripper
	hosts    []string
	open     []atomic.Int64        // requests that each replica has not answered
	budgets  []*retrybudget.Budget // of the clients; none: they pay for nothing
	random   func(n int64) int64   // from 0 to less than n
	began    time.Time
	came, ok [int(stormEnd/Step) + 100]atomic.Uint32 // clients that came, and that were answered well, in each step
}

// play sends the clients of a storm to the replicas.
func (s storm) play(t *testing.T, to http.RoundTripper, hosts []string, random func(n int64) int64) (shares, *loadgen.Result) {
	t.Helper()
	c := &crowd{to: to, hosts: hosts, open: make([]atomic.Int64, len(hosts)), random: random, began: time.Now()}
	for range stormClients {
		if !s.Protected {
			break
		}
		b, err := retrybudget.New(retrybudget.Config{Ratio: ratio})
		if err != nil {
			t.Fatal(err)
		}
		c.budgets = append(c.budgets, b)
	}
	rate := stormReplicas * stormWork.Capacity() / 2
	res, err := loadgen.Run(t.Context(), loadgen.Config{Target: loadgen.TargetFunc(c.do), Open: loadgen.Poisson(rate, stormEnd, s.Seed)})
	if err != nil {
		t.Fatal(err)
	}
	return sharesOf(c.answered), res
}

func (c *crowd) count(of []atomic.Uint32) {
	of[min(int(time.Since(c.began)/Step), len(of)-1)].Add(1)
}

// answered is the good answers between two times as a share of the clients that came then.
func (c *crowd) answered(from, to time.Duration) float64 {
	var came, ok uint32
	for i := int(from / Step); i < int(to/Step); i++ {
		came, ok = came+c.came[i].Load(), ok+c.ok[i].Load()
	}
	return float64(ok) / float64(came)
}

// do sends request n, up to three times.
func (c *crowd) do(ctx context.Context, n uint64) loadgen.Outcome {
	c.count(c.came[:])
	for try := 1; ; try++ {
		outcome := c.try(ctx)
		if outcome == loadgen.OK {
			c.count(c.ok[:])
			if c.budgets != nil {
				c.budgets[n%stormClients].Success()
			}
			return outcome
		}
		if try == stormTries || c.budgets != nil && !c.budgets[n%stormClients].TryTake() {
			return outcome
		}
		most := backoff << (try - 1)
		if Pause(ctx, most/2+time.Duration(c.random(int64(most/2)))) != nil {
			return outcome
		}
	}
}

// try asks the better of two random replicas.
func (c *crowd) try(ctx context.Context) loadgen.Outcome {
	i, j := c.random(int64(len(c.hosts))), c.random(int64(len(c.hosts)-1))
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.hosts[i]+"/", nil)
	if err != nil {
		return loadgen.Error
	}
	req.Header.Set(admissionhttp.HeaderDeadline, strconv.FormatInt(patience.Milliseconds(), 10))
	outcome, _ := Ask(c.to, req)
	return outcome
}

// inProcess is the replicas without a network, in whose place time may be virtual.
type inProcess map[string]http.Handler

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	p[r.URL.Host].ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// virtual is the storm over the code of the processes, in virtual time.
func (s storm) virtual(t *testing.T) (got shares) {
	synctest.Test(t, func(t *testing.T) {
		fleet := inProcess{}
		var hosts []string
		for i := range stormReplicas {
			handler, end, err := s.replica(i)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			host := strconv.Itoa(i)
			fleet[host], hosts = handler, append(hosts, host)
		}
		var mu sync.Mutex
		draws := rand.New(rand.NewPCG(s.Seed, 1))
		got, _ = s.play(t, fleet, hosts, func(n int64) int64 {
			mu.Lock()
			defer mu.Unlock()
			return draws.Int64N(n)
		})
	})
	return got
}

// The code of the processes, in virtual time, does what the simulator says. The law's trials are
// random: one trouble of eight seconds has 6 % more or less.
func TestTheSimulatorIsRightAboutAFleet(t *testing.T) {
	soak.WithoutRace(t)
	const seeds = 8
	for _, protected := range []bool{false, true} {
		var is shares
		for seed := range uint64(seeds) {
			is.add(storm{protected, seed}.virtual(t), seeds)
		}
		said := storm{Protected: protected}.simulated(t)
		t.Logf("protected %v: %.1f, the simulator says %.1f", protected, is, said)
		for i := range is {
			if d := said[i] - is[i]; d > 10 || d < -10 || protected && (said[i] < .9*is[i] || said[i] > 1.1*is[i]) {
				t.Errorf("protected %v: %.1f %%, and the simulator says %.1f %%", protected, is[i], said[i])
			}
		}
	}
}
