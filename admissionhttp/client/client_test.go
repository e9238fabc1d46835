package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/retrybudget"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// body records whether it was closed.
type body struct {
	io.Reader
	open *atomic.Int64
}

func (b *body) Close() error { b.open.Add(-1); return nil }

// fake answers with the given statuses in turn, then with 200. Every request and answer has a body
// that must be closed in the end.
type fake struct {
	statuses []int
	after    string // Retry-After of answers that are not 200
	open     atomic.Int64
	sent     []*http.Request
	bodies   []string
	at       []time.Time
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.sent = append(f.sent, r)
	f.at = append(f.at, time.Now())
	if r.Body != nil {
		text, _ := io.ReadAll(r.Body)
		f.bodies = append(f.bodies, string(text))
		_ = r.Body.Close()
	}
	status := http.StatusOK
	if len(f.statuses) > 0 {
		status, f.statuses = f.statuses[0], f.statuses[1:]
	}
	h := http.Header{}
	if status != http.StatusOK && f.after != "" {
		h.Set("Retry-After", f.after)
	}
	f.open.Add(1)
	const text = "an answer"
	return &http.Response{StatusCode: status, Header: h, Body: &body{strings.NewReader(text), &f.open}, ContentLength: int64(len(text)), Request: r}, nil
}

func newTransport(t *testing.T, cfg Config) *Transport {
	t.Helper()
	tr := must(New(cfg))
	tr.random = func() float64 { return 0.5 }
	return tr
}

func request(t *testing.T, ctx context.Context, method, text string) *http.Request {
	t.Helper()
	var r io.Reader
	if text != "" {
		r = strings.NewReader(text)
	}
	req := must(http.NewRequestWithContext(ctx, method, "http://patients.example/", r))
	return req
}

func TestARefusedRequestIsSentAgainAfterItsAdvice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{statuses: []int{503, 429}, after: "2"}
		tr := newTransport(t, Config{Base: f})
		resp, err := tr.RoundTrip(request(t, t.Context(), http.MethodPut, "a body"))
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v", resp, err)
		}
		_ = resp.Body.Close()
		if n := f.open.Load(); n != 0 {
			t.Errorf("%d bodies were not closed", n)
		}
		if got := strings.Join(f.bodies, ","); got != "a body,a body,a body" {
			t.Errorf("the server read %q", got)
		}
		for i := 1; i < len(f.at); i++ {
			if pause := f.at[i].Sub(f.at[i-1]); pause < 2*time.Second || pause > 3*time.Second {
				t.Errorf("attempt %d came after %v", i+1, pause)
			}
		}
		if got, want := tr.Stats(), (Stats{Requests: 1, Retries: 2, Shed: 2}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestWhatIsNotSentAgain(t *testing.T) {
	unrepeatable := func(r *http.Request) { r.GetBody = nil }
	lost := func(r *http.Request) { r.GetBody = func() (io.ReadCloser, error) { return nil, io.ErrUnexpectedEOF } }
	keyed := func(r *http.Request) { r.Header.Set("Idempotency-Key", "1") }
	for name, c := range map[string]struct {
		method, text, after string
		status              int
		edit                func(*http.Request)
		timeout             time.Duration
		sent                int
	}{
		"a get":                              {method: "GET", sent: 2},
		"no method is a get":                 {method: "GET", edit: func(r *http.Request) { r.Method = "" }, sent: 2},
		"a post":                             {method: "POST", text: "x", sent: 1},
		"a patch":                            {method: "PATCH", text: "x", sent: 1},
		"a post that says it is idempotent":  {method: "POST", text: "x", edit: keyed, sent: 2},
		"a body that can be read once":       {method: "PUT", text: "x", edit: unrepeatable, sent: 1},
		"a body that cannot be had again":    {method: "PUT", text: "x", edit: lost, sent: 1},
		"another status":                     {method: "GET", status: 500, sent: 1},
		"advice that is too long":            {method: "GET", after: "11", sent: 1},
		"advice that overflows":              {method: "GET", after: "99999999999999999999999", sent: 1},
		"advice that is nonsense":            {method: "GET", after: "soon", sent: 2},
		"a deadline before the advice":       {method: "GET", after: "3", timeout: 2 * time.Second, sent: 1},
		"a deadline after the advice":        {method: "GET", after: "3", timeout: 4 * time.Second, sent: 2},
		"advice to come at once waits a bit": {method: "GET", after: "0", sent: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.status == 0 {
					c.status = 503
				}
				f := &fake{statuses: []int{c.status}, after: c.after}
				tr := newTransport(t, Config{Base: f})
				ctx := t.Context()
				if c.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
					defer cancel()
				}
				req := request(t, ctx, c.method, c.text)
				if c.edit != nil {
					c.edit(req)
				}
				resp := must(tr.RoundTrip(req))
				want := c.status
				if c.sent > 1 {
					want = 200
				}
				text, err := io.ReadAll(resp.Body)
				if string(text) != "an answer" || err != nil || resp.StatusCode != want {
					t.Errorf("answered %d, %q, %v", resp.StatusCode, text, err)
				}
				_ = resp.Body.Close()
				if len(f.sent) != c.sent || f.open.Load() != 0 {
					t.Errorf("sent %d times with %d bodies open", len(f.sent), f.open.Load())
				}
				if c.sent > 1 && !f.at[1].After(f.at[0]) {
					t.Error("sent again without a pause")
				}
			})
		})
	}
}

// stuck is a body that blocks before its end.
type stuck struct {
	read   atomic.Int64
	closed chan struct{}
}

func (s *stuck) Read([]byte) (int, error) {
	s.read.Add(1)
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s *stuck) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

// RoundTrip waits for the rest of an answer within the pause, but not if the connection cannot be
// used again anyway.
func TestAnAnswerWithoutAnEndMakesThePauseNoLonger(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := &stuck{closed: make(chan struct{})}
			attempts, began := 0, time.Now()
			tr := newTransport(t, Config{Base: roundTripper(func(*http.Request) (*http.Response, error) {
				if attempts++; attempts > 1 {
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}}, nil
				}
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: b, ContentLength: -1, Close: closes, Header: http.Header{"Retry-After": {"2"}}}, nil
			})})
			must(tr.RoundTrip(request(t, t.Context(), http.MethodGet, "")))
			if took := time.Since(began); took != 2500*time.Millisecond || (b.read.Load() == 0) != closes {
				t.Errorf("closes %v: sent again after %v, read %d times", closes, took, b.read.Load())
			}
		})
	}
}

func TestAContextThatEndsInThePauseIsItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{statuses: []int{503, 503}, after: "5"}
		tr := newTransport(t, Config{Base: f})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		req := request(t, ctx, http.MethodPut, "x")
		get := req.GetBody
		req.GetBody = func() (io.ReadCloser, error) {
			f.open.Add(1)
			r, err := get()
			return &body{r, &f.open}, err
		}
		resp, err := tr.RoundTrip(req)
		if resp != nil || !errors.Is(err, context.Canceled) || len(f.sent) != 1 || f.open.Load() != 0 {
			t.Errorf("%v %v, sent %d times, %d bodies open", resp, err, len(f.sent), f.open.Load())
		}
	})
}

func TestWithoutAConnectionARequestIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		for _, c := range []struct {
			err  error
			sent int
		}{{dial, 3}, {io.ErrUnexpectedEOF, 1}, {context.Canceled, 1}, {errThrottled, 1}} {
			sent := 0
			tr := newTransport(t, Config{Base: roundTripper(func(*http.Request) (*http.Response, error) {
				sent++
				return nil, c.err
			})})
			resp, err := tr.RoundTrip(request(t, t.Context(), http.MethodGet, ""))
			if resp != nil || err != c.err || sent != c.sent {
				t.Errorf("%v: %v, sent %d times", c.err, err, sent)
			}
		}
	})
}

// For any pattern of refusals, successes must have earned the extra attempts.
func TestExtraAttemptsAreATenthOfWhatSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, ok := 0, 0
		budget := must(retrybudget.New(retrybudget.Config{Burst: 1}))
		tr := newTransport(t, Config{Budget: budget, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			n++
			status := http.StatusServiceUnavailable
			if n%2 == 0 {
				status = http.StatusOK
				ok++
			}
			return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}}, nil
		})})
		for range 10000 {
			resp := must(tr.RoundTrip(request(t, t.Context(), http.MethodGet, "")))
			_ = resp.Body.Close()
		}
		s := tr.Stats()
		if s.Retries == 0 || float64(s.Retries) > 1+0.1*float64(ok) || s.Unpaid == 0 {
			t.Errorf("%+v with %d successes", s, ok)
		}
	})
}

func TestTheContextSaysPriorityAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{statuses: []int{503}, after: "1"}
		tr := newTransport(t, Config{Base: f})
		ctx, cancel := context.WithTimeout(spillway.WithPriority(t.Context(), spillway.Critical), 5*time.Second)
		defer cancel()
		req := request(t, ctx, http.MethodGet, "")
		req.Header.Set(priorityHeader, "low")
		req.Header.Set(deadlineHeader, "60000")
		req.Header.Set("Accept", "text/plain")
		resp := must(tr.RoundTrip(req))
		_ = resp.Body.Close()
		for i, want := range []string{"5000", "3750"} {
			h := f.sent[i].Header
			if h.Get(priorityHeader) != "critical" || h.Get(deadlineHeader) != want || h.Get("Accept") != "text/plain" {
				t.Errorf("attempt %d has %v", i, h)
			}
		}
		if req.Header.Get(priorityHeader) != "low" || req.Header.Get(deadlineHeader) != "60000" {
			t.Error("the request was changed")
		}

		// Headers that the caller of a proxy made up are not passed on.
		req = request(t, t.Context(), http.MethodGet, "")
		req.Header.Set(priorityHeader, "critical")
		req.Header.Set(deadlineHeader, "60000")
		resp = must(tr.RoundTrip(req))
		_ = resp.Body.Close()
		if h := f.sent[2].Header; len(h) != 0 {
			t.Errorf("passed on %v", h)
		}
	})
}

func TestNewNamesAllThatIsWrong(t *testing.T) {
	if _, err := New(Config{MaxRetryAfter: 10}); err == nil || !strings.Contains(err.Error(), "MaxRetryAfter is 10ns") {
		t.Error(err)
	}
	_, err := New(Config{Attempts: -1, MaxRetryAfter: -1, Tolerance: 0.5, Budget: new(retrybudget.Budget)})
	for _, field := range []string{"Attempts", "MaxRetryAfter", "Tolerance", "Budget"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
}

// must returns v, and panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
