package client

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// seeded returns a source of numbers from 0 to less than 1, the same in every run.
func seeded(seed uint64) func() float64 {
	var mu sync.Mutex
	from := rand.New(rand.NewPCG(seed, 1))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return from.Float64()
	}
}

// At three times the capacity, 200 clients keep the server busy, spend no more than their budgets,
// and do not return all at once. They send fewer requests than their callers make.
func TestACrowdOfClientsAtThreeTimesTheCapacity(t *testing.T) {
	const (
		clients  = 200
		slots    = 10
		service  = 20 * time.Millisecond
		capacity = float64(slots) / 0.020 // requests per second
		run      = 10 * time.Second
		bin      = 100 * time.Millisecond
	)
	synctest.Test(t, func(t *testing.T) {
		lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(slots)}))
		start, advice := time.Now(), seeded(clients)
		var served atomic.Int64
		var bins [run / bin * 2]atomic.Int64
		server := roundTripper(func(r *http.Request) (*http.Response, error) {
			bins[min(time.Since(start)/bin, time.Duration(len(bins)-1))].Add(1)
			resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}}
			permit, err := lim.Acquire(r.Context())
			if err != nil {
				resp.StatusCode = http.StatusServiceUnavailable
				resp.Header.Set("Retry-After", strconv.Itoa(1+int(2*advice())))
				return resp, nil
			}
			defer permit.Release()
			time.Sleep(service)
			if time.Since(start) < run {
				served.Add(1)
			}
			permit.Done(nil)
			return resp, nil
		})
		var wg sync.WaitGroup
		var transports []*Transport
		for n := range uint64(clients) {
			tr := must(New(Config{Base: server}))
			tr.random = seeded(n)
			transports = append(transports, tr)
			arrivals := rand.New(rand.NewPCG(n, 2))
			wg.Go(func() {
				for time.Since(start) < run {
					time.Sleep(time.Duration(arrivals.ExpFloat64() * float64(time.Second) * clients / (3 * capacity)))
					wg.Go(func() { _, _ = tr.RoundTrip(request(t, t.Context(), http.MethodGet, "")) })
				}
			})
		}
		wg.Wait()
		var sum Stats
		for _, tr := range transports {
			s := tr.Stats()
			sum.Requests += s.Requests
			sum.Retries += s.Retries
			sum.Shed += s.Shed
			sum.Throttled += s.Throttled
			sum.Unpaid += s.Unpaid
		}
		mean, most := 3*capacity*bin.Seconds(), int64(0)
		for i := range bins {
			most = max(most, bins[i].Load())
		}
		goodput := float64(served.Load()) / run.Seconds() / capacity
		t.Logf("goodput %.3f of the capacity; %+v; mean %.0f arrivals a bin, most %d", goodput, sum, mean, most)
		if goodput < 0.95 {
			t.Errorf("goodput %.3f", goodput)
		}
		if float64(sum.Retries) > 10*clients+0.1*float64(served.Load()+1000) {
			t.Errorf("%d retries for %d served", sum.Retries, served.Load())
		}
		if float64(most) > 3*mean {
			t.Errorf("%d arrivals in a bin, mean %.0f", most, mean)
		}
		if sum.Throttled == 0 {
			t.Error("no client throttled itself")
		}
	})
}
