package admissionhttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/shedlog"
)

// counts are numbers of requests by how they ended: served, cancelled, or the reason of the refusal.
type counts map[string]int

// ledger receives what one middleware says of its requests, in each of the places where it is said.
type ledger struct {
	t      *testing.T
	lim    *limiter.Limiter
	server *httptest.Server
	shed   *shedlog.Log
	leave  chan struct{} // a handler ends for each message

	mu           sync.Mutex
	wire         counts // by an audit outside of the middleware: a client that has left reads nothing
	observed     counts
	would        counts
	logged, told lines // of Config.Logger, and of a shedlog that observes the limiter
}

// lines is the output of a logger.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// refused returns the sums of all lines.
func (l *lines) refused(t *testing.T) counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := counts{}
	for line := range strings.Lines(l.text.String()) {
		var entry struct{ Reasons counts }
		check(t, json.Unmarshal([]byte(line), &entry))
		for reason, n := range entry.Reasons {
			sum[reason] += n
		}
	}
	return sum
}

func (b *ledger) count(in counts, how string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in[how]++
}

type audited struct {
	http.ResponseWriter
	status int
}

func (w *audited) WriteHeader(status int)      { w.status = status; w.ResponseWriter.WriteHeader(status) }
func (w *audited) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func newLedger(t *testing.T, limits limiter.Config, cfg admissionhttp.Config) *ledger {
	t.Helper()
	b := &ledger{t: t, leave: make(chan struct{}), wire: counts{}, observed: counts{}, would: counts{}}
	b.shed = shedlog.New(shedlog.Config{Logger: slog.New(slog.NewJSONHandler(&b.told, nil))})
	limits.Law, limits.IgnoreProcessors = limit.NewFixed(1), true
	limits.Observer = limiter.Observers(&limiter.Observer{Rejected: b.shed.Rejected}, &limiter.Observer{
		Rejected:    func(_ spillway.Priority, r *spillway.Rejection) { b.count(b.observed, r.Reason.String()) },
		WouldReject: func(_ spillway.Priority, r *spillway.Rejection) { b.count(b.would, r.Reason.String()) },
	})
	var err error
	if b.lim, err = limiter.New(limits); err != nil {
		t.Fatal(err)
	}
	if cfg.Keyed == nil {
		cfg.Limiter = b.lim
	}
	cfg.Logger = slog.New(slog.NewJSONHandler(&b.logged, nil))
	cfg.Trusted = func(*http.Request) bool { return true }
	h := middleware(t, cfg)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-b.leave }))
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &audited{w, http.StatusOK}
		h.ServeHTTP(a, r)
		how := w.Header().Get(admissionhttp.HeaderReason)
		switch {
		case a.status == http.StatusOK && how == "":
			how = "served"
		case (a.status == 499) != (how == "cancelled"), how == "":
			how = fmt.Sprint(a.status, how)
		}
		b.count(b.wire, how)
	}))
	t.Cleanup(func() {
		close(b.leave) // a test that has failed leaves handlers behind
		b.server.Close()
	})
	return b
}

// send sends a request with headers, given as name and value in turn, and waits until the limiter has
// decided or queued it.
func (b *ledger) send(headers ...string) (leave context.CancelFunc) {
	b.t.Helper()
	before, arrived := b.lim.Stats().Offered, make(chan struct{})
	ctx, cancel := context.WithCancel(b.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	go func() {
		defer close(arrived)
		if resp, err := b.server.Client().Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	await.True(b.t, "the request has arrived", func() bool {
		select {
		case <-arrived:
			return true
		default:
			return b.lim.Stats().Offered > before
		}
	})
	return cancel
}

// end ends one handler.
func (b *ledger) end() {
	b.t.Helper()
	await.True(b.t, "a handler ends", func() bool {
		select {
		case b.leave <- struct{}{}:
			return true
		default:
			return false
		}
	})
}

// decided waits until n requests are through.
func (b *ledger) decided(n int) {
	b.t.Helper()
	await.True(b.t, "the requests are through", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		sum := 0
		for _, k := range b.wire {
			sum += k
		}
		return sum >= n
	})
}

// A client was told deadline_too_close while Stats, metrics and page counted a caller that had left, and
// no observer heard of it. However a request ends, all say the same.
func TestOneDecisionIsOnceInEveryBook(t *testing.T) {
	t.Parallel()
	const header, priority, who = admissionhttp.HeaderDeadline, admissionhttp.HeaderPriority, "X-Caller"
	caller := func(r *http.Request) string { return r.Header.Get(who) }
	soon := map[spillway.Priority]time.Duration{spillway.Normal: 50 * time.Millisecond}
	broken := must(limiter.NewKeyed(limiter.KeyedConfig{New: func(string) limiter.Config { return limiter.Config{MaxWait: -1} }}))
	for name, c := range map[string]struct {
		limits limiter.Config
		cfg    admissionhttp.Config
		play   func(b *ledger)
		want   counts
		would  counts // beside served
		silent bool   // the reason is no overload, and not logged
	}{
		"refused at once": {
			limits: limiter.Config{QueueSize: -1},
			play:   func(b *ledger) { b.send(); b.send(); b.end() },
			want:   counts{"served": 1, "queue_full": 1},
		},
		"refused after a wait": {
			limits: limiter.Config{MaxWait: 50 * time.Millisecond},
			play:   func(b *ledger) { b.send(); b.send(); b.decided(1); b.end() },
			want:   counts{"served": 1, "wait_too_long": 1},
		},
		"a deadline of the header passes in the queue": {
			play: func(b *ledger) { b.send(); b.send(header, "50"); b.decided(1); b.end() },
			want: counts{"served": 1, "deadline_too_close": 1},
		},
		"a deadline of the configuration passes in the queue": {
			cfg:  admissionhttp.Config{Deadlines: soon},
			play: func(b *ledger) { b.send(); b.send(); b.decided(1); b.end() },
			want: counts{"served": 1, "deadline_too_close": 1},
		},
		"a deadline has passed on arrival": {
			play: func(b *ledger) { b.send(header, "0"); b.decided(1) },
			want: counts{"deadline_too_close": 1},
		},
		"the client leaves the queue": {
			play: func(b *ledger) { b.send(); b.send()(); b.decided(1); b.end() },
			want: counts{"served": 1, "cancelled": 1},
		},
		"preempted": {
			limits: limiter.Config{QueueSize: 1},
			play: func(b *ledger) {
				b.send()
				b.send(priority, "low")
				b.send(priority, "critical")
				b.decided(1)
				b.end()
				b.end()
			},
			want: counts{"served": 2, "preempted": 1},
		},
		"draining": {
			play: func(b *ledger) {
				b.send()
				drained := make(chan error, 1)
				go func() { drained <- b.lim.Drain(await.Context(b.t, "the drain")) }()
				await.True(b.t, "the intake is closed", func() bool { return !b.lim.Open() })
				b.send()
				b.end()
				if err := await.Receive(b.t, "the drain", drained); err != nil {
					b.t.Error(err)
				}
			},
			want: counts{"served": 1, "draining": 1}, silent: true,
		},
		"closed": {
			play: func(b *ledger) {
				b.send()
				b.send()
				b.lim.Close()
				b.decided(1)
				b.send()
				b.decided(2)
				b.end()
			},
			want: counts{"served": 1, "closed": 2}, silent: true,
		},
		"more than a fair share": {
			cfg: admissionhttp.Config{FairShares: true, Caller: caller},
			play: func(b *ledger) {
				b.send(who, "a")
				b.send(who, "b")
				b.send(who, "a")
				b.decided(1)
				b.end()
				b.end()
			},
			want: counts{"served": 2, "quota": 1},
		},
		"a dry run for a part of the callers": {
			limits: limiter.Config{QueueSize: -1},
			cfg:    admissionhttp.Config{EnforcePercent: 1, Caller: func(*http.Request) string { return "not among the one per cent" }},
			play: func(b *ledger) {
				b.send()
				b.send()
				b.send(header, "0")
				b.end()
				b.end()
				b.end()
			},
			want: counts{"served": 3}, would: counts{"queue_full": 1, "deadline_too_close": 1},
		},
		"a dry run": {
			limits: limiter.Config{QueueSize: -1, Mode: limiter.DryRun},
			play:   func(b *ledger) { b.send(header, "0"); b.end() },
			want:   counts{"served": 1}, would: counts{"deadline_too_close": 1},
		},
		"a key without a limiter": {
			cfg:  admissionhttp.Config{Keyed: broken, Class: func(*http.Request) string { return "a" }},
			play: func(b *ledger) { b.send(); b.decided(1) },
			want: counts{"500": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newLedger(t, c.limits, c.cfg)
			c.play(b)
			total := 0
			for _, n := range c.want {
				total += n
			}
			b.decided(total)
			b.shed.Close()

			refused := maps.Clone(c.want)
			maps.DeleteFunc(refused, func(how string, _ int) bool { return how == "served" || how == "cancelled" || how == "500" })
			logged := refused
			if c.silent {
				logged = counts{}
			}
			books := maps.Clone(c.want)
			delete(books, "500") // no limiter decided
			would := c.would
			if would == nil {
				would = counts{}
			}
			await.True(t, "the loggers were called", func() bool { // by a timer
				return len(b.logged.refused(t)) >= len(logged) && len(b.told.refused(t)) >= len(logged)
			})
			b.mu.Lock()
			defer b.mu.Unlock()
			for book, is := range map[string][2]counts{
				"the wire":                 {b.wire, c.want},
				"Stats":                    {ofStats(t, b.lim), books},
				"metrics":                  {ofMetrics(b.lim, "spillway.requests"), books},
				"the page":                 {ofPage(t, b.lim, false), books},
				"the observer":             {b.observed, refused},
				"the log of the observer":  {b.told.refused(t), logged},
				"Config.Logger":            {b.logged.refused(t), logged},
				"the observer's dry run":   {b.would, would},
				"the dry run in metrics":   {ofMetrics(b.lim, "spillway.would_reject"), would},
				"the dry run on the page":  {ofPage(t, b.lim, true), would},
				"the dry run in the Stats": {byReason(b.lim.Stats().WouldRejectBy), would},
			} {
				if !maps.Equal(is[0], is[1]) {
					t.Errorf("%s: %v, want %v", book, is[0], is[1])
				}
			}
		})
	}
}

func byReason(n map[spillway.Reason]uint64) counts {
	all := counts{}
	for r, k := range n {
		all[r.String()] += int(k)
	}
	return all
}

// put adds n, unless n is zero.
func (c counts) put(how string, n int) {
	if n != 0 {
		c[how] += n
	}
}

func ofStats(t *testing.T, lim *limiter.Limiter) counts {
	s := lim.Stats()
	if s.Offered != s.Admitted+s.Rejected+s.Cancelled || s.Admitted != s.Completed || s.InFlight != 0 || s.Queued != 0 {
		t.Errorf("the ledger does not close: %+v", s)
	}
	all := byReason(s.RejectedBy)
	all.put("served", int(s.Admitted))
	all.put("cancelled", int(s.Cancelled))
	return all
}

func ofMetrics(lim *limiter.Limiter, name string) counts {
	all, source := counts{}, metrics.Limiter(lim)
	for _, s := range source.Read() {
		if how := s.Labels[len(s.Labels)-1]; source.Metrics()[s.Metric].Name == name {
			all.put(strings.Replace(how, "admitted", "served", 1), int(s.Value))
		}
	}
	return all
}

func ofPage(t *testing.T, lim *limiter.Limiter, dryRun bool) counts {
	var page struct {
		Limiters []struct {
			Admitted, Cancelled int
			RejectedBy          counts `json:"rejected_by"`
			WouldRejectBy       counts `json:"would_reject_by"`
		}
	}
	check(t, json.Unmarshal(get(admissionhttp.DebugHandler(lim), "/?format=json").Body.Bytes(), &page))
	all := counts{}
	if dryRun {
		maps.Copy(all, page.Limiters[0].WouldRejectBy)
		return all
	}
	maps.Copy(all, page.Limiters[0].RejectedBy)
	all.put("served", page.Limiters[0].Admitted)
	all.put("cancelled", page.Limiters[0].Cancelled)
	return all
}
