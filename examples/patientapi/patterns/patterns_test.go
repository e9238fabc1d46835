package patterns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/limiter"
)

// scripted is a store whose lookups do what the test says.
type scripted struct {
	*simulated.Store
	before func(ctx context.Context, id string) error
}

func (s scripted) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	if s.before != nil {
		if err := s.before(ctx, id); err != nil {
			return err
		}
	}
	return s.Store.Patient(context.WithoutCancel(ctx), id, dst) // only the script listens
}

func store(t *testing.T, before func(context.Context, string) error) scripted {
	t.Helper()
	s, err := simulated.New(1000, 1)
	require.NoError(t, err)
	return scripted{s, before}
}

// setup is a Config and the store that the operations ask.
type setup struct {
	Store              scripted
	Workers, QueueSize int
	QueueWait          time.Duration
}

// tested is a Runner with operations over a store.
type tested struct {
	*Runner
	store scripted
}

func (r *tested) Lookup(ctx context.Context, id string) (*Answer[patientapi.Patient], error) {
	return ask(ctx, r, func(ctx context.Context, p *patientapi.Patient) error { return r.store.Patient(ctx, id, p) })
}

func (r *tested) LookupBatch(ctx context.Context, ids []string) (*Answer[patientapi.Batch], error) {
	return ask(ctx, r, func(ctx context.Context, b *patientapi.Batch) error { return r.store.Patients(ctx, ids, b) })
}

// ask runs an operation as a service does: through admission, if the pattern has it in
// front.
func ask[T any](ctx context.Context, r *tested, fill func(context.Context, *T) error) (a *Answer[T], err error) {
	lim := r.Admission()
	if lim == nil {
		return Run(ctx, r.Runner, fill)
	}
	err = lim.Do(ctx, func(ctx context.Context) error {
		a, err = Run(ctx, r.Runner, fill)
		return err
	})
	return a, err
}

// second makes every lookup take one second, or less when its caller leaves.
var second = takes(time.Second)

// takes makes every lookup take that long, or less when its caller leaves.
func takes(d time.Duration) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func newRunner(t *testing.T, name string, cfg setup) *tested {
	t.Helper()
	r, err := New(name, Config{Workers: cfg.Workers, QueueSize: cfg.QueueSize, QueueWait: cfg.QueueWait})
	require.NoError(t, err)
	return &tested{r, cfg.Store}
}

// each runs the test for every pattern in virtual time and checks afterwards
// that the books balance and that nothing is left running.
func each(t *testing.T, names []string, cfg setup, test func(t *testing.T, r *tested)) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRunner(t, name, cfg)
				test(t, r)
				if err := r.Drain(t.Context()); err != nil {
					t.Error("drain:", err)
				}
				s := r.Stats()
				if s.InFlight != 0 || s.Queued != 0 || s.Admitted != s.Completed || s.Offered != s.Admitted+s.Rejected+s.Cancelled {
					t.Errorf("the books do not balance: %+v", s)
				}
			})
		})
	}
}

var bounded = []string{WorkerPool, Optimized, Limiter}

// flood sends n requests at once and counts what becomes of them.
func flood(ctx context.Context, r *tested, n int) (ok, refused, other int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			resp, err := r.Lookup(ctx, patientapi.FormatID(i+1))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && resp.Value.ID == patientapi.FormatID(i+1):
				ok++
				resp.Release()
			case errors.Is(err, spillway.ErrRejected):
				refused++
			default:
				other++
			}
		})
	}
	wg.Wait()
	return ok, refused, other
}

// QueueWait is for room in a full queue: one runs, one is queued, one finds room after 1 s,
// and after 2 s it would be too late for the fourth.
func TestWhatRunsAtOnceWhatWaitsAndWhatIsRefused(t *testing.T) {
	for _, c := range []struct {
		names  []string
		cfg    setup
		n, ok  int
		took   time.Duration
		peak   int
		reason string
	}{
		{[]string{Naive}, setup{Workers: 1}, 500, 500, time.Second, 500, ""},
		{bounded, setup{Workers: 4, QueueSize: 8}, 50, 12, 3 * time.Second, 4, "queue_full"},
		{[]string{WorkerPool, Optimized}, setup{Workers: 1, QueueSize: 1, QueueWait: 1500 * time.Millisecond}, 4, 3, 3 * time.Second, 1, "wait_too_long"},
	} {
		c.cfg.Store = store(t, second)
		each(t, c.names, c.cfg, func(t *testing.T, r *tested) {
			start := time.Now()
			ok, refused, other := flood(t.Context(), r, c.n)
			if took := time.Since(start); ok != c.ok || refused != c.n-c.ok || other != 0 || took != c.took {
				t.Errorf("%d ok, %d refused, %d other in %v; want %d in %v", ok, refused, other, took, c.ok, c.took)
			}
			if s := r.Stats(); s.Peak != c.peak || s.Rejected != uint64(refused) || refused > 0 && s.Reasons[c.reason] != uint64(refused) {
				t.Errorf("peak %d, reasons %v", s.Peak, s.Reasons)
			}
		})
	}
}

var bad = map[string]func(){
	"P000901": func() { panic("a bug") },
	"P000902": func() { runtime.Goexit() },
	"P000903": func() { panic(http.ErrAbortHandler) },
}

// end runs fn and says how it ended: an error, a panic's value or "goexit".
func end(fn func() error) (how any) {
	done := make(chan any)
	go func() {
		how := any("goexit")
		defer func() {
			if v := recover(); v != nil {
				how = v
			}
			done <- how
		}()
		how = fn()
	}()
	return <-done
}

func TestBadLookupsCostNoSlotAndEndTheirCallerTheSameWay(t *testing.T) {
	cfg := setup{Workers: 2, QueueSize: 0, Store: store(t, func(_ context.Context, id string) error {
		if do := bad[id]; do != nil {
			do()
		}
		return nil
	})}
	each(t, names, cfg, func(t *testing.T, r *tested) {
		for range 5 {
			for id, want := range map[string]any{"P000901": "a bug", "P000902": "goexit", "P000903": http.ErrAbortHandler} {
				if got := end(func() error { _, err := r.Lookup(t.Context(), id); return err }); got != want {
					t.Errorf("%s ended as %v, want %v", id, got, want)
				}
				synctest.Wait()
			}
		}
		for range 2 { // both slots
			resp, err := r.Lookup(t.Context(), "P000001")
			if err != nil || resp.Value.ID != "P000001" {
				t.Fatal("a slot was lost:", err)
			}
		}
	})
}

func TestWrongSettingsSayWhatToDo(t *testing.T) {
	ok := Config{Workers: 1}
	cases := []struct {
		name string
		cfg  func(*Config)
		want string
	}{
		{"actors", func(*Config) {}, "want one of naive, workerpool, optimized, limiter, adaptive"},
		{Limiter, func(c *Config) { c.QueueSize = -1 }, "queue-size is -1"},
		{WorkerPool, func(c *Config) { c.Mode = limiter.DryRun }, "mode is dryrun, and pattern workerpool has no limiter"},
	}
	for _, c := range cases {
		cfg := ok
		c.cfg(&cfg)
		if _, err := New(c.name, cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := New("actors", ok); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// The accounting must hold at the end of any history: random latencies, errors,
// panics and callers who leave.
func TestBooksBalanceAfterAnyHistory(t *testing.T) {
	cfg := setup{Workers: 7, QueueSize: 20, QueueWait: 10 * time.Millisecond, Store: store(t, func(ctx context.Context, id string) error {
		n, _ := patientapi.ParseID(id)
		switch n % 10 {
		case 0:
			panic("a bug")
		case 1:
			return patientapi.ErrUnavailable
		}
		return takes(time.Duration(n)*time.Millisecond)(ctx, id)
	})}
	each(t, names, cfg, func(t *testing.T, r *tested) {
		rng := rand.New(rand.NewPCG(1, 2))
		var wg sync.WaitGroup
		for range 2000 {
			n := 1 + rng.IntN(100)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(100))*time.Millisecond)
			wg.Go(func() {
				defer cancel()
				end(func() error {
					resp, err := r.Lookup(ctx, patientapi.FormatID(n))
					if err == nil {
						if resp.Value.ID != patientapi.FormatID(n) {
							return fmt.Errorf("asked for %d, got %s", n, resp.Value.ID)
						}
						resp.Release()
					}
					return err
				})
			})
			if rng.IntN(10) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		wg.Wait()
		if s := r.Stats(); s.Offered != 2000 || (s.Pattern != Naive && s.Pattern != Adaptive && s.Peak > 7) {
			t.Errorf("%+v", s)
		}
	})
}
