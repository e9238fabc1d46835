package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// script is the behavior of one branch.
type script struct {
	required, fails, deaf bool
	takes, within         time.Duration // within zero: no own deadline
}

// play is a call of branches, in their starting order.
type play struct {
	mode      Mode
	exhausted bool // the call is parallel, but there is no token
	branches  []script
	end       time.Duration // end of the caller's context; zero: never
	cancel    bool          // the context is cancelled at end; otherwise its deadline passes
}

type answer struct {
	elapsed time.Duration
	values  string
	missing string
	err     string
}

const never = time.Duration(1 << 62)

func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return never
	}
	return d
}

// twin predicts the result of the call from the whole script at once.
func (p play) twin() (a answer) {
	end, why := orNever(p.end), context.DeadlineExceeded
	if p.cancel {
		why = context.Canceled
	}
	var fatal error
	var values, missing []string
	fail := func(i int, err error) {
		missing = append(missing, fmt.Sprint(i, ": ", err))
		if errors.Is(err, context.Canceled) {
			fatal = context.Canceled
		} else if p.branches[i].required && fatal == nil {
			fatal = &BranchError{fmt.Sprint(i), err}
		}
	}
	if p.mode == Sequential {
		for i, s := range p.branches {
			limit, over := end, why
			if own := a.elapsed + s.within; s.within > 0 && own < end { // counted from the branch's own start
				limit, over = own, context.DeadlineExceeded
			}
			stop := false
			switch done := a.elapsed + s.takes; {
			case a.elapsed >= end:
				fail(i, why)
			case done > limit: // the branch's result no longer counts
				if a.elapsed = limit; s.deaf {
					a.elapsed = done
				}
				fail(i, over)
				stop = s.required && limit < end
			case s.fails:
				a.elapsed = done
				fail(i, errDown)
				stop = s.required
			default:
				a.elapsed = done
				values = append(values, fmt.Sprint(i))
			}
			if stop {
				break
			}
		}
	} else {
		for _, s := range p.branches { // the last branch to be settled
			a.elapsed = max(a.elapsed, min(s.takes, orNever(s.within)))
		}
		for _, s := range p.branches { // unless a required branch fails first
			if settled := min(s.takes, orNever(s.within)); s.required && (s.fails || s.takes > settled) {
				a.elapsed = min(a.elapsed, settled)
			}
		}
		a.elapsed = min(a.elapsed, end)
		broken := slices.ContainsFunc(p.branches, func(s script) bool {
			settled := min(s.takes, orNever(s.within))
			return s.required && settled == a.elapsed && (s.fails || s.takes > settled)
		})
		for i, s := range p.branches {
			switch settled := min(s.takes, orNever(s.within)); {
			case settled > a.elapsed && broken: // cancelled: not reported
			case settled > a.elapsed:
				fail(i, why)
			case settled < s.takes:
				fail(i, context.DeadlineExceeded)
			case s.fails:
				fail(i, errDown)
			default:
				values = append(values, fmt.Sprint(i))
			}
		}
	}
	a.missing = fmt.Sprint(missing)
	if fatal != nil {
		a.err, values = fatal.Error(), nil
	}
	a.values = fmt.Sprint(values)
	return a
}

// live makes the call.
func (p play) live(t *testing.T) (a answer) {
	var branches []Branch[int, []string]
	for i, s := range p.branches {
		run := func(ctx context.Context, _ int) (string, error) {
			heard := ctx.Done()
			if s.deaf {
				heard = nil
			}
			if s.takes > 0 { // no timer of 0, as in source.ask
				select {
				case <-time.After(s.takes):
				case <-heard:
					return "", ctx.Err()
				}
			}
			if s.fails {
				return "", errDown
			}
			return fmt.Sprint(i), nil
		}
		merge := func(all *[]string, v string) { *all = append(*all, v) }
		b := Optional(fmt.Sprint(i), run, merge)
		if s.required {
			b = Required(fmt.Sprint(i), run, merge)
		}
		branches = append(branches, b.Within(s.within))
	}
	cfg, held := Config{Mode: p.mode}, 0
	if p.exhausted {
		cfg.Mode, held = Parallel, 1
		cfg.Bulkhead, _ = NewBulkhead(1)
		cfg.Bulkhead.take()
	}
	f := made(t, cfg, branches...)
	for range 2 { // the second call reuses the frame
		ctx, cancel := context.WithCancel(t.Context())
		if p.end > 0 && p.cancel {
			time.AfterFunc(p.end, cancel)
		} else if p.end > 0 {
			ctx, cancel = context.WithTimeout(ctx, p.end)
		}
		began := time.Now()
		got, err := f.Do(ctx, 0)
		a = answer{elapsed: time.Since(began), values: fmt.Sprint(got.Value)}
		var missing []string
		for _, m := range got.Missing {
			missing = append(missing, m.Branch+": "+m.Err.Error())
		}
		if a.missing = fmt.Sprint(missing); err != nil {
			a.err = err.Error()
		}
		time.Sleep(time.Hour) // the late branches end
		synctest.Wait()
		if n := f.bulkhead.InUse() - held; n != 0 {
			t.Fatalf("%d goroutines are left", n)
		}
		cancel()
	}
	return a
}

// parse makes a play from any bytes. No two events happen at the same time, because their order
// would depend on the scheduler.
func parse(data []byte) play {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	head := next()
	p := play{mode: Parallel, cancel: head&2 != 0}
	if head&1 != 0 {
		p.mode = Sequential
	}
	// Times are whole numbers of units plus a different power of two each, so all sums differ.
	tick := time.Duration(1)
	when := func(n int) time.Duration {
		d := time.Duration(n%16)*ms + tick
		tick *= 2
		return d
	}
	if head&4 != 0 {
		p.end = when(next())
	}
	for range 1 + head>>3%5 {
		flags := next()
		s := script{required: flags&1 != 0, fails: flags&2 != 0, deaf: flags&4 != 0, takes: when(next())}
		if flags&8 != 0 {
			s.within = when(next())
		}
		p.branches = append(p.branches, s)
	}
	slices.SortStableFunc(p.branches, func(a, b script) int {
		switch {
		case a.required == b.required:
			return 0
		case a.required:
			return -1
		}
		return 1
	})
	return p
}

func FuzzCallsDoWhatTheirTwinSays(f *testing.F) {
	f.Add([]byte{0b1000, 1, 5, 0, 4})
	f.Add([]byte{0b1100, 7, 1, 5, 6, 9})
	f.Add([]byte{0b100111, 3, 9, 1, 5, 12, 4, 3, 2, 1, 15, 8, 8, 8})
	f.Add([]byte{0b11110, 9, 12, 5, 3, 5, 2, 12, 7, 7, 15, 6, 6, 6, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64 {
			return
		}
		p := parse(data)
		synctest.Test(t, func(t *testing.T) {
			if got, want := p.live(t), p.twin(); got != want {
				t.Errorf("%+v:\n got %+v\nwant %+v", p, got, want)
			}
		})
	})
}
