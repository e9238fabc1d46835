package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

// lookup is the Fanout of these tests: a required database and an optional cache.
type lookup = Fanout[string, []string]

func merge(users *[]string, more []string) {
	for _, u := range more {
		if !slices.Contains(*users, u) {
			*users = append(*users, u)
		}
	}
}

// source is the behavior of a branch, in virtual time.
type source struct {
	takes  time.Duration
	users  []string
	err    error
	deaf   bool // ignores its context
	wraps  bool // wraps the error of its context
	panics bool
	does   func(context.Context, string) ([]string, error) // replaces all other fields
}

func (s source) ask(ctx context.Context, q string) ([]string, error) {
	if s.does != nil {
		return s.does(ctx, q)
	}
	ended := ctx.Done()
	if s.deaf {
		ended = nil
	}
	// Make no timer of 0: two goroutines of a bubble that receive from such a timer at the same
	// time crash the race detector (go.dev/issue/78156).
	if s.takes > 0 {
		select {
		case <-time.After(s.takes):
		case <-ended:
			if s.wraps {
				return nil, fmt.Errorf("query 7: %w", ctx.Err())
			}
			return nil, ctx.Err()
		}
	}
	if s.panics {
		panic("nil map")
	}
	return s.users, s.err
}

func newLookup(t *testing.T, cfg Config, database, cache source) *lookup {
	t.Helper()
	f := made(t, cfg, Optional("cache", cache.ask, merge), Required("database", database.ask, merge))
	return f
}

var errDown = errors.New("down")

// after answers after d, or ends with its context.
func after(d time.Duration, err error, users ...string) source {
	return source{takes: d, err: err, users: users}
}

// deaf is like after, but ignores its context.
func deaf(d time.Duration, users ...string) source {
	return source{takes: d, users: users, deaf: true}
}

func panics(d time.Duration) source { return source{takes: d, panics: true, deaf: true} }

const ms = time.Millisecond

// fails fails after d with its own error, and ignores its context.
func fails(d time.Duration) source { return source{takes: d, err: errDown, deaf: true} }

// wraps returns s with errors that wrap the error of the context.
func wraps(s source) source {
	s.wraps = true
	return s
}

// Every row is a result that a caller may see, with the exact time. Each row runs with its branches
// beside the caller, and in the caller, by mode or for lack of a token. Only the time depends on
// where branches run, with one exception: a branch that has not started is either not reported or
// missing.
func TestSemantics(t *testing.T) {
	long := 5 * time.Second
	exhausted := spent()
	for _, row := range []struct {
		name            string
		database, cache source
		timeout, leave  time.Duration // the caller's
		within          time.Duration // the cache's

		elapsed time.Duration
		alone   time.Duration // when branches run in the caller; zero: the same as elapsed
		users   string
		missing string // format: branch: error
		waiting string // missing when branches run in the caller; empty: the same
		err     string
		is      error
	}{
		{name: "both fine", database: after(50*ms, nil, "ann", "bob"), cache: after(40*ms, nil, "bob", "eve"),
			elapsed: 50 * ms, alone: 90 * ms, users: "ann bob eve"},
		{name: "the required one fails while the other hangs", database: after(1*ms, errDown), cache: deaf(long, "x"),
			elapsed: 1 * ms, err: "fanout: branch database: down", is: errDown, missing: "database: down"},
		{name: "the optional one fails", database: after(50*ms, nil, "ann"), cache: after(1*ms, errDown),
			elapsed: 50 * ms, alone: 51 * ms, users: "ann", missing: "cache: down"},
		{name: "both fail", database: after(50*ms, errDown), cache: after(1*ms, errDown),
			elapsed: 50 * ms, err: "fanout: branch database: down", is: errDown, missing: "database: down, cache: down", waiting: "database: down"},

		{name: "the deadline is between the two", database: after(10*ms, nil, "ann"), cache: deaf(long, "x"), timeout: 30 * ms,
			elapsed: 30 * ms, alone: 10*ms + long, users: "ann", missing: "cache: context deadline exceeded"},
		{name: "the deadline passes and both hear of it", database: wraps(after(long, nil, "x")), cache: wraps(after(long, nil, "x")), timeout: 30 * ms,
			elapsed: 30 * ms, err: "fanout: branch database: context deadline exceeded", is: context.DeadlineExceeded,
			missing: "database: context deadline exceeded, cache: context deadline exceeded"},

		{name: "the cache's own deadline, kept", database: after(50*ms, nil, "ann"), cache: after(long, nil, "x"), within: 20 * ms,
			elapsed: 50 * ms, alone: 70 * ms, users: "ann", missing: "cache: context deadline exceeded"},
		{name: "the cache's own deadline, ignored", database: after(10*ms, nil, "ann"), cache: deaf(long, "x"), within: 20 * ms,
			elapsed: 20 * ms, alone: 10*ms + long, users: "ann", missing: "cache: context deadline exceeded"},
		{name: "the caller's deadline is before the cache's own", database: after(50*ms, nil, "ann"), cache: after(long, nil, "x"), within: 20 * ms, timeout: 60 * ms,
			elapsed: 50 * ms, alone: 60 * ms, users: "ann", missing: "cache: context deadline exceeded"},

		{name: "the required one panics", database: panics(1 * ms), cache: deaf(long, "x"),
			elapsed: 1 * ms, err: "fanout: branch database: panic: nil map", missing: "database: panic: nil map"},
		{name: "the optional one panics", database: after(50*ms, nil, "ann"), cache: panics(1 * ms),
			elapsed: 50 * ms, alone: 51 * ms, users: "ann", missing: "cache: panic: nil map"},

		{name: "the caller leaves", database: deaf(long, "x"), cache: after(long, nil, "x"), leave: 7 * ms,
			elapsed: 7 * ms, alone: long, err: "context canceled", is: context.Canceled, missing: "database: context canceled, cache: context canceled"},
		{name: "the caller leaves and both tell in their own words", database: wraps(after(long, nil, "x")), cache: wraps(after(long, nil, "x")), leave: 7 * ms,
			elapsed: 7 * ms, err: "context canceled", is: context.Canceled, missing: "database: context canceled, cache: context canceled"},
		{name: "the caller leaves before a panic", database: panics(long), cache: deaf(long, "x"), leave: 7 * ms,
			elapsed: 7 * ms, alone: long, err: "context canceled", is: context.Canceled, missing: "database: context canceled, cache: context canceled"},
	} {
		for _, cfg := range []Config{{Mode: Auto}, {Mode: Parallel}, {Mode: Sequential}, {Mode: Parallel, Bulkhead: exhausted}} {
			name, row := cfg.Mode.String(), row
			if cfg.Mode == Sequential || cfg.Bulkhead != nil {
				row.elapsed = cmp.Or(row.alone, row.elapsed)
				row.missing = cmp.Or(row.waiting, row.missing)
			}
			if cfg.Bulkhead != nil {
				name = "without a token"
			}
			t.Run(row.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					held := 0
					if cfg.Bulkhead != nil {
						held = 1
					}
					f := made(t, cfg,
						Optional("cache", row.cache.ask, merge).Within(row.within), Required("database", row.database.ask, merge))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if row.timeout > 0 {
						ctx, cancel = context.WithTimeout(ctx, row.timeout)
						defer cancel()
					}
					if row.leave > 0 {
						time.AfterFunc(row.leave, cancel)
					}
					began := time.Now()
					got, err := f.Do(ctx, "ann@example.org")
					if elapsed := time.Since(began); elapsed != row.elapsed {
						t.Errorf("it took %v, want %v", elapsed, row.elapsed)
					}
					if users := strings.Join(got.Value, " "); users != row.users {
						t.Errorf("users %q, want %q", users, row.users)
					}
					if row.is != nil && !errors.Is(err, row.is) {
						t.Errorf("error %v is not %v", err, row.is)
					}
					if message := firstLine(err); message != row.err {
						t.Errorf("error %q, want %q", message, row.err)
					}
					var missing []string
					for _, m := range got.Missing {
						missing = append(missing, m.Branch+": "+firstLine(m.Err))
					}
					if list := strings.Join(missing, ", "); list != row.missing {
						t.Errorf("missing %q, want %q", list, row.missing)
					}
					// The late branches end without changing the result.
					before := slices.Clone(got.Value)
					time.Sleep(2 * long)
					synctest.Wait()
					if !slices.Equal(before, got.Value) {
						t.Errorf("a late branch changed %v to %v", before, got.Value)
					}
					if s := f.Stats(); s.Late != s.LateEnded || f.bulkhead.InUse() != held {
						t.Errorf("%d late, %d of them ended, %d goroutines", s.Late, s.LateEnded, f.bulkhead.InUse())
					}
				})
			})
		}
	}
}

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func TestLosersLearnWhyTheyWereCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause, derived error
		f := newLookup(t, Config{}, after(1*ms, errDown), source{does: func(ctx context.Context, _ string) ([]string, error) {
			own, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			<-own.Done()
			cause, derived = context.Cause(ctx), context.Cause(own)
			return nil, ctx.Err()
		}})
		_, _ = f.Do(t.Context(), "")
		synctest.Wait()
		for _, err := range []error{cause, derived} {
			if b, ok := errors.AsType[*BranchError](err); !ok || b.Branch != "database" || !errors.Is(err, errDown) {
				t.Errorf("the cause is %v, want the database's failure", err)
			}
		}
	})
}

func TestAPanicCarriesItsStack(t *testing.T) {
	for _, mode := range []Mode{Parallel, Sequential} {
		synctest.Test(t, func(t *testing.T) {
			f := newLookup(t, Config{Mode: mode}, panics(0), after(0, nil))
			_, err := f.Do(t.Context(), "")
			p, ok := errors.AsType[*spillway.PanicError](err)
			if !ok || p.Value != "nil map" || !strings.Contains(string(p.Stack), "source.ask") {
				t.Errorf("%v: %v", mode, err)
			}
		})
	}
}

func TestGoexitInABranchEndsTheCaller(t *testing.T) {
	exhausted, _ := NewBulkhead(1)
	for name, cfg := range map[string]Config{
		"beside": {Mode: Parallel}, "in": {Mode: Sequential}, "in, without a token": {Mode: Parallel, Bulkhead: exhausted},
	} {
		synctest.Test(t, func(t *testing.T) {
			if cfg.Bulkhead != nil {
				exhausted.take()
				defer exhausted.give()
			}
			f := newLookup(t, cfg, source{does: func(context.Context, string) ([]string, error) { runtime.Goexit(); return nil, nil }}, after(time.Hour, nil))
			if returned(func() { _, _ = f.Do(t.Context(), "") }) {
				t.Errorf("%s the caller: Do returned", name)
			}
			synctest.Wait()
			if cfg.Bulkhead == nil && f.bulkhead.InUse() != 0 {
				t.Errorf("%s the caller: %d goroutines are left", name, f.bulkhead.InUse())
			}
		})
	}
}

func TestTheErrorOfADeadlineNamesTheBranchThatMissedIt(t *testing.T) {
	everywhere(t, func(t *testing.T, cfg Config) {
		f := newLookup(t, cfg, after(time.Hour, nil), after(0, nil))
		_, err := within(t, f, 30*ms, "")
		if b, ok := errors.AsType[*BranchError](err); !ok || b.Branch != "database" || b.Err != context.DeadlineExceeded {
			t.Errorf("passed: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(ms, cancel)
		if _, err := f.Do(ctx, ""); err != context.Canceled {
			t.Errorf("cancelled: %v", err)
		}
		if got, err := f.Do(ctx, ""); err != context.Canceled || got.Missing != nil {
			t.Errorf("cancelled before: %v, %v", got, err)
		}
		if got, err := within(t, f, -1, ""); err != context.DeadlineExceeded || got.Missing != nil {
			t.Errorf("passed before: %v, %v", got, err)
		}
	})
}

// hostile is an error whose method panics.
type hostile struct{}

func (hostile) Error() string { return "hostile" }
func (hostile) Is(error) bool { panic("nil map") }

// An error whose method panics once ended the process if its branch ran on another goroutine. In the
// caller, the panic led to the unlock of a mutex that was not locked. The panic of a late branch's
// error once left Do in Sequential.
func TestAnErrorWhoseMethodPanicsIsAPanicOfItsBranch(t *testing.T) {
	everywhere(t, func(t *testing.T, cfg Config) {
		if cfg.Mode == Sequential {
			return // no method of an error is called while no context has ended
		}
		f := newLookup(t, cfg, after(ms, nil, "ann"), source{err: hostile{}})
		held := f.bulkhead.InUse()
		got, err := f.Do(t.Context(), "")
		if err != nil || len(got.Missing) != 1 || firstLine(got.Missing[0].Err) != "panic: nil map" {
			t.Errorf("%v, %v", got, err)
		}
		if synctest.Wait(); f.bulkhead.InUse() != held {
			t.Errorf("%d goroutines are left", f.bulkhead.InUse()-held)
		}
	})
	everywhere(t, func(t *testing.T, cfg Config) {
		late := make(chan string, 1)
		cfg.OnLate = func(e *BranchError) { late <- firstLine(e.Err) }
		f := made(t, cfg, Optional("cache", source{takes: 2 * ms, deaf: true, err: hostile{}}.ask, merge).Within(ms))
		got, err := f.Do(t.Context(), "")
		if err != nil || len(got.Missing) != 1 || got.Missing[0].Err != context.DeadlineExceeded {
			t.Errorf("%v, %v", got, err)
		}
		if got := <-late; got != "panic: nil map" {
			t.Errorf("late: %s", got)
		}
		synctest.Wait()
	})
}

// exiting is an error whose method calls runtime.Goexit.
type exiting struct{}

func (exiting) Error() string { return "exiting" }
func (exiting) Is(error) bool { runtime.Goexit(); return false }

// Such an error's branch once never ended, and its caller hung.
func TestGoexitInAnErrorsMethodEndsTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLookup(t, Config{Mode: Parallel}, source{err: exiting{}}, after(ms, nil))
		if returned(func() { _, _ = f.Do(t.Context(), "") }) {
			t.Error("Do returned")
		}
		if synctest.Wait(); f.bulkhead.InUse() != 0 {
			t.Errorf("%d goroutines are left", f.bulkhead.InUse())
		}
	})
}
