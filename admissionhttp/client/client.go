// Package client sends HTTP requests to servers that shed load, without making their overload
// worse.
//
//	transport, err := client.New(client.Config{})
//	httpClient := &http.Client{Transport: transport, Timeout: 2 * time.Second}
//
// A Transport retries a refused request if the server allows it, after the time that the server
// gives, and as long as a budget pays for the retry. A server that goes on refusing gets fewer
// requests: the Transport fails the rest at once, without sending them. Each request carries its
// priority and its remaining time to the server.
//
// A request counts as refused when it is answered 503 or 429.
//
// # Cost
//
// A request costs what [Config.Base] costs for it, and the operations on the budget. No benchmark
// measures a Transport alone.
//
// # Pitfalls
//
//   - Some requests fail without being sent. Their error matches spillway.ErrRejected: handle such
//     an error as a refusal.
//   - A request with a body is retried only if Request.GetBody makes the body available again.
//   - Each host is throttled separately, but the requests that succeed at one host pay for retries
//     at another. Use one Transport for each server.
//
// # When not to use it
//
// A Transport retries only idempotent methods and requests with an Idempotency-Key (see
// [Transport.RoundTrip]). Retries of other calls stay with their caller.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/retrybudget"
)

// The headers that a Transport sets, as admissionhttp reads them.
const (
	priorityHeader = "Spillway-Priority"
	deadlineHeader = "Spillway-Deadline"
)

// Config configures a Transport. The zero value works.
type Config struct {
	// Base sends the requests. Nil means http.DefaultTransport.
	Base http.RoundTripper

	// Budget pays for every attempt after the first, and earns from requests that succeed. Nil
	// means a private Budget with the defaults of package retrybudget: one extra attempt for ten
	// successes.
	Budget *retrybudget.Budget

	// Attempts is the maximum number of attempts per request. Zero means 3, and 1 means no retries.
	Attempts int

	// MaxRetryAfter is the longest Retry-After that a Transport waits for. The actual wait is
	// longer by a random part, up to half of Retry-After. An answer with a longer Retry-After is
	// returned to the caller as it is. Zero means 10 seconds.
	MaxRetryAfter time.Duration

	// Tolerance is how many requests are sent for each request that the server accepts; the
	// Transport refuses the rest. Each priority and host is counted separately. If the server
	// accepts fewer than one request in Tolerance, the Transport sends little more than one request
	// in twenty. Clients without throttling get more than that: beside such clients, use a higher
	// Tolerance. Zero means 2, and math.Inf(1) refuses none.
	Tolerance float64
}

const (
	defaultAttempts      = 3
	defaultMaxRetryAfter = 10 * time.Second
	defaultTolerance     = 2

	// mostHosts bounds the hosts whose answers are remembered; a new host replaces the least recently
	// used one.
	mostHosts = 256
)

// Transport is an http.RoundTripper that reduces its requests to an overloaded server. It is safe
// for concurrent use and has no goroutine. New makes one.
type Transport struct {
	base          http.RoundTripper
	budget        *retrybudget.Budget
	attempts      int
	maxRetryAfter time.Duration
	throttle      throttle
	random        func() float64 // from 0 to less than 1
	stall         time.Duration

	requests, retries, shed, throttled, unpaid atomic.Uint64
}

// Stats counts what a Transport did since it was made. The fields are read one
// after the other.
type Stats struct {
	Requests  uint64 // calls of RoundTrip
	Retries   uint64 // attempts after the first
	Shed      uint64 // attempts answered 503 or 429
	Throttled uint64 // requests refused by the Transport and not sent
	Unpaid    uint64 // attempts not made for want of budget
}

// New returns a Transport. The error names every invalid field, one on a line.
func New(cfg Config) (*Transport, error) {
	var wrong []error
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("client: "+format, args...)) }
	if cfg.Attempts < 0 {
		fault("Attempts is %d: it cannot be negative (zero means %d)", cfg.Attempts, defaultAttempts)
	}
	if cfg.MaxRetryAfter < 0 {
		fault("MaxRetryAfter is %v: it cannot be negative (zero means %v)", cfg.MaxRetryAfter, defaultMaxRetryAfter)
	} else if cfg.MaxRetryAfter > 0 && cfg.MaxRetryAfter < time.Millisecond {
		fault("MaxRetryAfter is %v: the least is 1ms, and a plain number counts nanoseconds (write 2*time.Second)", cfg.MaxRetryAfter)
	}
	if cfg.Tolerance != 0 && !(cfg.Tolerance >= 1) {
		fault("Tolerance is %v: use 1 or more (zero means %v)", cfg.Tolerance, defaultTolerance)
	}
	if cfg.Budget != nil && cfg.Budget.Ratio() == 0 {
		fault("the Budget is a zero value: use retrybudget.New")
	}
	if cfg.Budget == nil {
		cfg.Budget, _ = retrybudget.New(retrybudget.Config{}) // the zero Config is valid
	}
	if cfg.Base == nil {
		cfg.Base = http.DefaultTransport
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return &Transport{
		base: cfg.Base, budget: cfg.Budget,
		attempts:      cmp.Or(cfg.Attempts, defaultAttempts),
		maxRetryAfter: cmp.Or(cfg.MaxRetryAfter, defaultMaxRetryAfter),
		throttle:      newThrottle(cmp.Or(cfg.Tolerance, defaultTolerance), mostHosts),
		random:        rand.Float64,
		stall:         defaultStall,
	}, nil
}

// Stats returns the counts.
func (t *Transport) Stats() Stats {
	return Stats{t.requests.Load(), t.retries.Load(), t.shed.Load(), t.throttled.Load(), t.unpaid.Load()}
}

// CloseIdleConnections closes the idle connections of Base, if Base can. http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// throttledCause is the Cause of requests that are not sent.
const throttledCause = "server sheds"

var errThrottled = &spillway.Rejection{Reason: spillway.ReasonSignal, Cause: throttledCause}

// RoundTrip sends req with the priority and the deadline of its context. Spillway-Priority carries
// the priority: low, high or critical. Normal is not sent. Spillway-Deadline carries the time left
// until the deadline, in whole milliseconds, from 1 to 99,999,999. Both come from the context alone:
// RoundTrip replaces or removes such headers of req, so that a proxy passes on nothing that a caller
// made up.
//
// While the server refuses most requests, some requests are not sent: the error is then a
// *spillway.Rejection with the Reason Signal.
//
// RoundTrip retries a request that the server refused, after its Retry-After, or else after a
// growing, random time. It also retries a request for which no connection could be made. Only a
// request with an idempotent method or an Idempotency-Key is retried. Its body must be available
// again, its deadline must be later, and the budget must pay for the retry. Otherwise RoundTrip
// returns the answer as it is. The wait ends with the context, and the error is then the context's
// error.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.requests.Add(1)
	ctx := req.Context()
	of := t.throttle.counter(req.URL, spillway.PriorityFrom(ctx))
	if t.throttle.refuses(of, time.Now(), t.random()) {
		t.throttled.Add(1)
		closeBody(req)
		return nil, errThrottled
	}
	for attempt := 1; ; attempt++ {
		resp, err := t.base.RoundTrip(prepare(req))
		shed := isShed(resp)
		if resp != nil {
			t.note(of, resp, shed)
		}
		if !shed && !notSent(err) || !t.mayRepeat(req, attempt) {
			return resp, err
		}
		pause, ok := t.pause(resp, attempt)
		if !ok || tooLate(ctx, pause) || !t.pay() {
			return resp, err
		}
		next, bodyErr := again(req)
		if bodyErr != nil {
			return resp, err // no new body for a retry
		}
		end := time.Now().Add(pause)
		t.discard(resp) // counts as part of the pause
		if err := sleep(ctx, time.Until(end)); err != nil {
			closeBody(next)
			return nil, err
		}
		t.retries.Add(1)
		req = next
	}
}

// note counts an answer. An attempt without an answer does not show whether the server would have
// accepted it.
func (t *Transport) note(of *counter, resp *http.Response, shed bool) {
	t.throttle.answered(of, time.Now(), !shed)
	if shed {
		t.shed.Add(1)
	}
	if resp.StatusCode < http.StatusInternalServerError && !shed {
		t.budget.Success()
	}
}

// pay takes the price of one attempt from the budget.
func (t *Transport) pay() bool {
	if t.budget.TryTake() {
		return true
	}
	t.unpaid.Add(1)
	return false
}

// mayRepeat reports whether req may be sent again after the given number of attempts.
func (t *Transport) mayRepeat(req *http.Request, attempts int) bool {
	if attempts >= t.attempts {
		return false
	}
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}

// firstPause is the first full pause, which doubles with each attempt. The actual pause is random,
// between half of the full pause and all of it, so that clients refused together do not return
// together. It applies if the server gives no advice, and is the minimum if it does.
const firstPause = 100 * time.Millisecond

// pause returns how long to wait before the next attempt. False: longer than MaxRetryAfter.
func (t *Transport) pause(resp *http.Response, attempt int) (time.Duration, bool) {
	full := min(firstPause<<min(attempt-1, 20), t.maxRetryAfter)
	own := full/2 + time.Duration(t.random()*float64(full)/2)
	if resp == nil {
		return own, true
	}
	after, ok := retryAfter(resp.Header, time.Now())
	if !ok {
		return own, true
	}
	// Advice in whole seconds makes clients return together. Spread their returns over another half
	// of the advice.
	return max(own, after+time.Duration(t.random()*float64(after)/2)), after <= t.maxRetryAfter
}

// isShed reports whether the server refused the request.
func isShed(resp *http.Response) bool {
	return resp != nil && (resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests)
}

// notSent reports whether no connection could be made for the request, so that the server received
// nothing.
func notSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// tooLate reports whether ctx ends within the pause.
func tooLate(ctx context.Context, pause time.Duration) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(end) <= pause
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
