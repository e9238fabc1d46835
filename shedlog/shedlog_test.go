package shedlog

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// lines collects the logged lines and their times.
type lines struct {
	mu   sync.Mutex
	text []string
	at   []time.Time
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.at = append(l.text, strings.TrimSpace(string(p))), append(l.at, time.Now())
	return len(p), nil
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

var full = &spillway.Rejection{Reason: spillway.ReasonQueueFull}

func (l *lines) check(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := strings.Join(l.text, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("logged:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func TestALineAtTheOnsetOneAPeriodAndOneAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := New(Config{Logger: out.logger(), Period: time.Second})
		time.Sleep(time.Minute)
		out.check(t)
		log.Rejected(spillway.Low, full)
		out.check(t, `level=WARN msg=shedding refused=1 reasons.queue_full=1 priorities.low=1`)
		for range 100 {
			log.Rejected(spillway.Low, full)
		}
		log.Rejected(spillway.Critical, &spillway.Rejection{Reason: spillway.ReasonWaitTooLong})
		time.Sleep(1500 * time.Millisecond)
		out.check(t,
			`level=WARN msg=shedding refused=1 reasons.queue_full=1 priorities.low=1`,
			`level=WARN msg=shedding refused=101 reasons.queue_full=100 reasons.wait_too_long=1 priorities.low=100 priorities.critical=1`)
		time.Sleep(time.Second)
		out.check(t,
			`level=WARN msg=shedding refused=1 reasons.queue_full=1 priorities.low=1`,
			`level=WARN msg=shedding refused=101 reasons.queue_full=100 reasons.wait_too_long=1 priorities.low=100 priorities.critical=1`,
			`level=INFO msg="shedding is over" refused=0 refused_in_all=102 after=2s`)
		time.Sleep(time.Hour)
		if len(out.text) != 3 {
			t.Errorf("%d lines after an hour without a refusal", len(out.text))
		}
	})
}

// Shedding that comes and goes must not write a line each time.
func TestAtMostOneLineAPeriodWhateverComes(t *testing.T) {
	for name, gap := range map[string]time.Duration{"flood": time.Millisecond, "on and off": 1300 * time.Millisecond, "now and then": 2100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out lines
				log := New(Config{Logger: out.logger(), Period: time.Second})
				begin, n := time.Now(), 0
				for ; time.Since(begin) < time.Minute; n++ {
					log.Rejected(spillway.Normal, full)
					time.Sleep(gap)
				}
				log.Close()
				synctest.Wait()
				for i := 1; i < len(out.at)-1; i++ { // without the line of Close
					if d := out.at[i].Sub(out.at[i-1]); d < time.Second {
						t.Errorf("%v between two lines", d)
					}
				}
				if len(out.at) < 10 || len(out.at) > 62 {
					t.Errorf("%d lines in a minute", len(out.at))
				}
			})
		})
	}
}

func TestEveryRefusalIsInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sum := &adder{}
		log := New(Config{Logger: slog.New(sum), Period: time.Second})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for range 50 {
					log.Rejected(spillway.Normal, full)
					time.Sleep(time.Duration(i*37) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		log.Close()
		synctest.Wait()
		if sum.refused != 1000 {
			t.Errorf("%d refusals are in the lines, want 1000", sum.refused)
		}
	})
}

// adder sums the refusals in all lines.
type adder struct {
	slog.Handler
	mu      sync.Mutex
	refused uint64
}

func (a *adder) Enabled(context.Context, slog.Level) bool { return true }

func (a *adder) Handle(_ context.Context, r slog.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Attrs(func(at slog.Attr) bool {
		if at.Key == "refused" {
			a.refused += at.Value.Uint64()
		}
		return true
	})
	return nil
}

func TestCloseWritesTheLastLineAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := New(Config{Logger: out.logger()})
		log.Rejected(spillway.Normal, full)
		synctest.Wait()
		log.Rejected(spillway.Normal, full)
		time.Sleep(time.Second)
		log.Close()
		log.Close()
		log.Rejected(spillway.Normal, full)
		time.Sleep(time.Hour)
		out.check(t,
			`level=WARN msg=shedding refused=1 reasons.queue_full=1 priorities.normal=1`,
			`level=INFO msg="shedding is over" refused=1 reasons.queue_full=1 priorities.normal=1 refused_in_all=2 after=1s`)
	})
}

// Refusals of a service that stops are no overload.
func TestALimiterThatDrainsDoesNotShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := New(Config{Logger: out.logger()})
		lim, err := limiter.New(limiter.Config{Observer: &limiter.Observer{Rejected: log.Rejected}})
		if err != nil {
			t.Fatal(err)
		}
		lim.Close()
		if _, err := lim.Acquire(t.Context()); err == nil {
			t.Fatal("a closed limiter admits")
		}
		time.Sleep(time.Hour)
		out.check(t)
	})
}

// A refusal must not wait for a logger that hangs, nor for another refusal's line.
func TestARefusalNeverWaitsForTheLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		log := New(Config{Logger: slog.New(stuck{adder: &adder{}, until: hang})})
		for range 1000 {
			log.Rejected(spillway.Normal, full)
			synctest.Wait()
		}
		close(hang)
		log.Close()
	})
}

type stuck struct {
	*adder
	until chan struct{}
}

func (s stuck) Handle(ctx context.Context, r slog.Record) error {
	<-s.until
	return s.adder.Handle(ctx, r)
}

// A line said how much was refused, and nobody knew of which work.
func TestALineNamesTheWorkThatIsRefusedMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := New(Config{Logger: out.logger(), Period: time.Second})
		lim, err := limiter.New(limiter.Config{Name: "http", Law: limit.NewFixed(1), QueueSize: -1, Observer: &limiter.Observer{Rejected: log.Rejected}})
		if err != nil {
			t.Fatal(err)
		}
		log.Watch(lim)
		held, err := lim.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		refuse := func(kind string, n int) {
			for range n {
				_, _ = lim.TryAcquire(spillway.WithKind(t.Context(), kind))
			}
		}
		refuse("GET /a", 1)
		synctest.Wait()
		refuse("", 7)
		for i, kind := range []string{"GET /a", "GET /b", "GET /c", "GET /d"} {
			time.Sleep(150 * time.Millisecond) // the limiter asks its gate anew, which learns the name
			refuse(kind, 5*(i+1))
		}
		time.Sleep(500 * time.Millisecond)
		held.Done(nil)
		time.Sleep(time.Minute)
		out.check(t,
			`level=WARN msg=shedding refused=1 reasons.queue_full=1 priorities.normal=1 "kinds.GET /a"=1 limiter=http limit=1 state=fixed`,
			`level=WARN msg=shedding refused=57 reasons.queue_full=57 priorities.normal=57 "kinds.GET /d"=20 "kinds.GET /c"=15 "kinds.GET /b"=10 limiter=http limit=1 state="nothing has ended for 1s with 1 in flight; fixed"`,
			`level=INFO msg="shedding is over" refused=0 refused_in_all=58 after=2s limiter=http limit=1 state=fixed`)
	})
}
