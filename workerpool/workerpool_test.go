package workerpool

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func pool(t testing.TB, cfg Config) *Pool {
	t.Helper()
	p, err := New(cfg)
	noError(t, err)
	t.Cleanup(p.Close)
	return p
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// atRest checks the ledger once everything has ended.
func atRest(t testing.TB, p *Pool) {
	t.Helper()
	s := p.Stats()
	if s.Offered != s.Completed+s.Rejected+s.Cancelled+s.Dropped || s.Admitted != s.Completed || s.InFlight+s.Queued+s.Blocked != 0 {
		t.Fatalf("the ledger does not close: %+v", s)
	}
}

// drained drains a pool, and checks its ledger.
func drained(t testing.TB, p *Pool) {
	t.Helper()
	noError(t, p.Drain(t.Context()))
	atRest(t, p)
}

func reason(err error) spillway.Reason {
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		return rej.Reason
	}
	return 0
}

func nothing(context.Context) error { return nil }

func sleep(d time.Duration) Job {
	return func(context.Context) error { time.Sleep(d); return nil }
}

func TestWorkersStartOnDemandUpToTheirBoundAndLeaveWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MinWorkers: 1, MaxWorkers: 3, QueueSize: 10, IdleTimeout: time.Second})
		if s := p.Stats(); s.Workers != 0 {
			t.Fatalf("a new pool has %d workers", s.Workers)
		}
		for range 8 {
			noError(t, p.Submit(t.Context(), sleep(100*time.Millisecond)))
		}
		synctest.Wait() // each worker calls the next
		if s := p.Stats(); s.Workers != 3 || s.InFlight != 3 || s.Queued != 5 {
			t.Fatalf("%+v", s)
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if s := p.Stats(); s.Completed != 8 || s.Workers-s.InFlight != 3 {
			t.Fatalf("8 jobs of 100 ms on 3 workers after 300 ms: %+v", s)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if s := p.Stats(); s.Workers != 1 || s.InFlight != 0 {
			t.Fatalf("after the idle timeout: %+v", s)
		}
		p.Close()
		atRest(t, p)
	})
}

func TestJobsStartInTheOrderTheyWereAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 2})
		var order []int
		for i := range 6 { // one runs, two queue, three wait for room
			go func() {
				err := p.Submit(t.Context(), func(context.Context) error {
					order = append(order, i)
					time.Sleep(time.Second)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if s := p.Stats(); s.Blocked != 3 || s.Queued != 2 {
			t.Fatalf("%+v", s)
		}
		time.Sleep(3500 * time.Millisecond) // by then the queue has room for all
		noError(t, p.Drain(t.Context()))
		if len(order) != 6 {
			t.Fatalf("only %v ran", order)
		}
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
		atRest(t, p)
	})
}

func TestAFullPoolRefusesAtOnceOrAfterMaxWaitOrWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			maxWait, deadline, waits time.Duration
			want                     spillway.Reason
		}{
			{maxWait: -1, want: spillway.ReasonQueueFull},
			{maxWait: 100 * time.Millisecond, waits: 100 * time.Millisecond, want: spillway.ReasonWaitTooLong},
			{maxWait: 0, deadline: 3 * time.Second, waits: 3 * time.Second},
			{maxWait: 5 * time.Second, deadline: 3 * time.Second, waits: 3 * time.Second},
		} {
			p := pool(t, Config{MaxWorkers: 1, QueueSize: 1, MaxWait: c.maxWait})
			for range 2 {
				noError(t, p.Submit(t.Context(), sleep(10*time.Second)))
			}
			ctx, cancel := context.WithCancel(t.Context())
			if c.deadline > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), c.deadline)
			}
			start := time.Now()
			err := p.Submit(ctx, nothing)
			if time.Since(start) != c.waits || reason(err) != c.want || c.want == 0 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%+v: after %v: %v", c, time.Since(start), err)
			}
			start = time.Now()
			if err := p.TrySubmit(ctx, nothing); reason(err) != spillway.ReasonQueueFull || time.Since(start) != 0 {
				t.Errorf("TrySubmit waited %v: %v", time.Since(start), err)
			}
			cancel()
			drained(t, p)
		}
	})
}

// A refused caller searches the queue for cancelled jobs. During a search, a submitter about to
// push once found the room of the removed jobs, and 13 of 12 were accepted.
func TestLookingThroughAFullQueueMakesNoRoom(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			p := pool(t, Config{MaxWorkers: 4, QueueSize: 8, MaxWait: -1})
			var accepted atomic.Int64
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if p.Submit(t.Context(), sleep(time.Second)) == nil {
						accepted.Add(1)
					}
				})
			}
			wg.Wait()
			if n := accepted.Load(); n != 12 {
				t.Errorf("%d accepted by 4 workers and a queue of 8", n)
			}
			noError(t, p.Drain(t.Context()))
		})
	}
}

func TestAJobWhoseContextEndedBeforeItStartedNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notified []Result
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 5, OnDone: func(r Result) { notified = append(notified, r) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = p.Submit(t.Context(), sleep(2*time.Second))
		ran := false
		job := func(context.Context) error { ran = true; return nil }
		_ = p.Submit(ctx, job)
		_ = p.Submit(context.WithoutCancel(ctx), nothing) // outlives its caller
		noError(t, p.Drain(t.Context()))
		if ran || len(notified) != 3 || notified[1].Started || !errors.Is(notified[1].Err, context.DeadlineExceeded) || !notified[2].Started {
			t.Fatalf("ran %v, told %+v", ran, notified)
		}
		if err := p.Submit(ctx, job); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an ended context was accepted: %v", err)
		}
		if s := p.Stats(); s.Cancelled != 2 {
			t.Fatalf("%+v", s)
		}
		atRest(t, p)
	})
}

func TestDoReturnsWhatTheFunctionReturned(t *testing.T) {
	p := pool(t, Config{})
	boom := errors.New("boom")
	got, err := Do(t.Context(), p, func(context.Context) (string, error) { return "partial", boom })
	if got != "partial" || err != boom {
		t.Fatalf("%q, %v", got, err)
	}
	if s := p.Stats(); s.Completed != 1 || s.Ended[limit.Success] != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestDoReturnsAtOnceWhenItsContextEndsMidRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		got, err := Do(ctx, p, func(context.Context) (int, error) { time.Sleep(5 * time.Second); return 7, nil })
		if got != 0 || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Fatalf("%d, %v after %v", got, err, time.Since(start))
		}
		if err := p.Drain(t.Context()); err != nil || time.Since(start) != 5*time.Second {
			t.Fatalf("the function was not waited for: %v after %v", err, time.Since(start))
		}
		atRest(t, p)
	})
}

// outcomeOf runs fn as the goroutine of a caller and says how it ended.
func outcomeOf(fn func()) (recovered any, returned bool) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if !returned {
				recovered = recover()
			}
		}()
		fn()
		returned = true
	})
	wg.Wait()
	return recovered, returned
}

func TestPanicsGoexitAndAbortsNeverCostAWorker(t *testing.T) {
	p := pool(t, Config{MaxWorkers: 2, QueueSize: -1, MaxWait: -1})
	do := func(fn func()) func() {
		return func() {
			_, _ = Do(context.Background(), p, func(context.Context) (int, error) { fn(); return 0, nil })
		}
	}
	for range 3 {
		if v, _ := outcomeOf(do(func() { panic("bad") })); v != "bad" {
			t.Fatalf("the caller saw %v", v)
		}
		if v, _ := outcomeOf(do(func() { panic(http.ErrAbortHandler) })); v != any(http.ErrAbortHandler) {
			t.Fatalf("the caller saw %v", v)
		}
		if v, returned := outcomeOf(do(runtime.Goexit)); v != nil || returned {
			t.Fatalf("Goexit became %v, returned %v", v, returned)
		}
	}
	if _, returned := outcomeOf(do(func() {})); !returned {
		t.Fatal("the pool is broken")
	}
	noError(t, p.Drain(t.Context()))
	if s := p.Stats(); s.Panicked != 6 || s.Ended[limit.Success] != 1 || s.Completed != 10 || s.Service.Count() != 1 {
		t.Fatalf("%+v with %d run times, want that of the one that returned", s, s.Service.Count())
	}
	atRest(t, p)
}

// A Result once did not identify its job.
func TestOnDoneIsToldOfPanicsGoexitAndErrors(t *testing.T) {
	type jobKey struct{}
	var mu sync.Mutex
	var notified []Result
	p := pool(t, Config{MaxWorkers: 1, OnDone: func(r Result) { mu.Lock(); notified = append(notified, r); mu.Unlock() }})
	boom := errors.New("boom")
	for i, job := range []Job{
		func(context.Context) error { panic(boom) },
		func(context.Context) error { runtime.Goexit(); return nil },
		func(context.Context) error { return boom },
		nothing,
	} {
		noError(t, p.Submit(context.WithValue(t.Context(), jobKey{}, i), job))
	}
	noError(t, p.Drain(t.Context()))
	if len(notified) != 4 {
		t.Fatalf("told %d times", len(notified))
	}
	for i, r := range notified {
		if r.Context.Value(jobKey{}) != i {
			t.Errorf("result %d has the context of job %v", i, r.Context.Value(jobKey{}))
		}
	}
	pe, ok := errors.AsType[*spillway.PanicError](notified[0].Err)
	if !ok || !errors.Is(pe, boom) || !strings.Contains(string(pe.Stack), "TestOnDoneIsTold") {
		t.Errorf("panic: %v", notified[0].Err)
	}
	if notified[1].Err != ErrGoexit || notified[2].Err != boom || notified[3].Err != nil {
		t.Errorf("told %+v", notified)
	}
	atRest(t, p)
}

// A panic that nobody receives must not be swallowed: it ends the process.
func TestAPanicWithoutOnDoneEndsTheProcess(t *testing.T) {
	kind := os.Getenv("WORKERPOOL_TEST_PANIC")
	if kind != "" {
		p, _ := New(Config{PanicsAsErrors: kind == "error"})
		bad := func() { panic("nobody is told") }
		switch kind {
		case "submit", "error": // nobody would receive the error
			_ = p.Submit(context.Background(), func(context.Context) error { bad(); return nil })
		case "do": // the caller has left
			ctx, cancel := context.WithCancel(context.Background())
			gone := make(chan struct{})
			_, _ = Do(ctx, p, func(context.Context) (int, error) { cancel(); <-gone; bad(); return 0, nil })
			close(gone)
		}
		select {}
	}
	for _, kind := range []string{"submit", "error", "do"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAPanicWithoutOnDoneEndsTheProcess$")
		cmd.Env = append(os.Environ(), "WORKERPOOL_TEST_PANIC="+kind)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: nobody is told") {
			t.Errorf("%s: err %v, output %s", kind, err, out)
		}
	}
}

func TestDrainEndsWithItsContextAndDropsWhatHasNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified := make(chan Result, 10)
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 10, OnDone: func(r Result) { notified <- r }})
		for range 3 {
			_ = p.Submit(t.Context(), sleep(10*time.Second))
		}
		var doErr error
		go func() {
			_, doErr = Do(context.Background(), p, func(context.Context) (int, error) { return 0, nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := p.Drain(ctx)
		d, ok := errors.AsType[*spillway.DrainError](err)
		if !ok || d.Dropped != 3 || d.Running != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
		synctest.Wait()
		if reason(doErr) != spillway.ReasonDraining || len(notified) != 3 || reason((<-notified).Err) != spillway.ReasonDraining {
			t.Fatalf("Do got %v, OnDone was told %d times", doErr, len(notified))
		}
		drained(t, p)
	})
}

func TestCloseDropsTheQueueAndLeavesRunningJobsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 1})
		finished := false
		_ = p.Submit(t.Context(), func(context.Context) error { time.Sleep(time.Second); finished = true; return nil })
		_ = p.Submit(t.Context(), nothing)
		var blocked error
		go func() { blocked = p.Submit(context.Background(), nothing) }()
		synctest.Wait()
		p.Close()
		p.Close()
		synctest.Wait()
		if err := p.Submit(t.Context(), nothing); reason(err) != spillway.ReasonClosed || reason(blocked) != spillway.ReasonClosed {
			t.Fatalf("arrival %v, blocked %v", err, blocked)
		}
		time.Sleep(2 * time.Second)
		if s := p.Stats(); !finished || s.Dropped != 1 || s.Workers != 0 {
			t.Fatalf("finished %v: %+v", finished, s)
		}
		atRest(t, p)
	})
}

func TestDoReturnsAPanicAsAnErrorIfAskedTo(t *testing.T) {
	p := pool(t, Config{MaxWorkers: 1, PanicsAsErrors: true})
	for range 2 {
		_, err := Do(t.Context(), p, func(context.Context) (int, error) { panic("bad") })
		pe, ok := errors.AsType[*spillway.PanicError](err)
		if !ok || pe.Value != "bad" || !strings.Contains(string(pe.Stack), "TestDoReturnsAPanicAsAnError") {
			t.Fatalf("%v", err)
		}
	}
	if s := p.Stats(); s.Panicked != 2 {
		t.Fatalf("%+v", s)
	}
}

// A late job may still write to its record, so the record must not go to another caller.
func TestALateResultReachesNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 100})
		for i := range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond+1)
			n, err := Do(ctx, p, func(context.Context) (int, error) {
				time.Sleep(time.Duration(i%5) * time.Millisecond)
				return i + 1, nil
			})
			if err == nil && n != i+1 || err != nil && n != 0 {
				t.Fatalf("call %d got %d, %v", i+1, n, err)
			}
			cancel()
		}
		noError(t, p.Drain(t.Context()))
	})
}

// With no queue, the second of two jobs once waited for the first to end, although a worker was
// free. This happened when the pool predicted that its queue would drain soon.
func TestWithoutAQueueEveryWorkerIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 2, QueueSize: -1})
		for range 200 { // until the pool has measured a rate
			_ = p.Submit(t.Context(), sleep(2*time.Millisecond))
		}
		for range 50 { // in most rounds the second job comes before the worker of the first one runs
			time.Sleep(3 * time.Second)
			start := time.Now()
			for range 2 {
				_ = p.Submit(t.Context(), sleep(time.Second))
			}
			if d := time.Since(start); d > 0 {
				t.Fatalf("the second of two jobs on two workers waited %v", d)
			}
		}
		noError(t, p.Drain(t.Context())) // the bubble's clock stops when this returns
	})
}

// The caller of a measured job was once told before OnDone, if other jobs waited.
func TestOnDoneIsToldBeforeTheCallerOfDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{Law: limit.NewFixed(1), OnDone: func(Result) { time.Sleep(time.Second) }})
		var wg sync.WaitGroup
		start := time.Now()
		for i := range 3 { // each job runs for a second, and OnDone for another
			wg.Go(func() {
				_, _ = Do(t.Context(), p, func(context.Context) (int, error) { time.Sleep(time.Second); return 0, nil })
				if got, want := time.Since(start), time.Duration(i+1)*2*time.Second; got != want {
					t.Errorf("call %d returned after %v, want %v", i, got, want)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// A cancelled job once counted both as cancelled and as running while its worker called OnDone.
func TestTheLedgerClosesWhileACancelledJobEnds(t *testing.T) {
	var p *Pool
	var seen []Stats
	p = pool(t, Config{MaxWorkers: 1, OnDone: func(Result) { seen = append(seen, p.Stats()) }})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{gone, t.Context(), gone, t.Context()} {
		noError(t, p.TrySubmit(ctx, nothing))
	}
	noError(t, p.Drain(t.Context()))
	last := uint64(0)
	for _, s := range seen {
		if s.Offered != s.Completed+s.Rejected+s.Cancelled+s.Dropped+uint64(s.Queued+s.InFlight+s.Blocked) || s.Completed < last {
			t.Errorf("%d were completed before: %+v", last, s)
		}
		last = s.Completed
	}
	if len(seen) != 4 {
		t.Errorf("OnDone was told of %d jobs of 4", len(seen))
	}
	atRest(t, p)
}

// fillShort returns a pool with a queue of 8 that is worked off in a moment, so that its worker
// takes jobs without a lock. The worker then runs a job that never ends. 6 jobs are left in the
// queue, and one submitter waits, although there is room for 2.
func fillShort(t *testing.T) *Pool {
	p := pool(t, Config{MaxWorkers: 1, QueueSize: 8})
	p.queue.SetLow(4)
	first := make(chan struct{})
	ever := func(context.Context) error { <-t.Context().Done(); return nil }
	jobs := []Job{func(context.Context) error { <-first; return nil }, nothing, ever}
	for range 6 {
		jobs = append(jobs, nothing)
	}
	for _, job := range jobs {
		noError(t, p.Submit(t.Context(), job))
	}
	go func() { _ = p.Submit(t.Context(), nothing) }() // waits, so that half of the queue is to be worked off first
	synctest.Wait()
	close(first)
	synctest.Wait()
	return p
}

// The next look of the pool admits the waiting submitter although a worker is busy forever. The
// look once did so only when it found a cancelled job.
func TestASubmitterDoesNotWaitForABusyWorkerWhileThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fillShort(t)
		time.Sleep(2 * beat)
		if s := p.Stats(); s.Blocked != 0 || s.Queued != 7 {
			t.Fatalf("%d wait for room in a queue of 8 with %d", s.Blocked, s.Queued)
		}
		p.Close()
	})
}

// A waiting submitter comes first, but one place of two is left for others.
func TestNobodyIsRefusedWhileThereIsRoomForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fillShort(t)
		if err := p.TrySubmit(t.Context(), nothing); err != nil {
			t.Fatalf("%v: %+v", err, p.Stats())
		}
		if err := p.TrySubmit(t.Context(), nothing); reason(err) != spillway.ReasonQueueFull {
			t.Fatalf("%v: %+v", err, p.Stats())
		}
		p.Close()
	})
}

// The caller of Do once left a queued job, and OnDone did not receive the end of the job.
func TestOnDoneIsToldOfACallThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notified []Result
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 1, OnDone: func(r Result) { notified = append(notified, r) }})
		noError(t, p.Submit(t.Context(), sleep(time.Minute)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Do(ctx, p, func(context.Context) (int, error) { return 1, nil }); err != context.DeadlineExceeded {
			t.Fatal(err)
		}
		if len(notified) != 1 || notified[0] != (Result{Context: notified[0].Context, Err: context.DeadlineExceeded, Waited: time.Second}) {
			t.Fatalf("OnDone was told %+v", notified)
		}
		if err := p.Drain(t.Context()); err != nil || len(notified) != 2 {
			t.Fatalf("%v; OnDone was told %+v", err, notified)
		}
	})
}

// OnDone panics on the goroutine of a caller that closes the pool and recovers. The callers of the
// other dropped jobs once waited forever.
func TestAPanicOfOnDoneLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 3, OnDone: func(r Result) {
			if !r.Started {
				panic("OnDone")
			}
		}})
		noError(t, p.Submit(t.Context(), sleep(time.Minute)))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := Do(t.Context(), p, func(context.Context) (int, error) { return 1, nil }); reason(err) != spillway.ReasonClosed {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if got, _ := outcomeOf(p.Close); got != "OnDone" {
			t.Error(got)
		}
		wg.Wait()
		if err := p.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Drain once found the pool empty while Close had yet to call OnDone for the jobs that it had
// dropped.
func TestDrainWaitsUntilCloseHasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified := 0
		p := pool(t, Config{MaxWorkers: 1, QueueSize: 4, OnDone: func(r Result) {
			if !r.Started {
				time.Sleep(time.Minute)
				notified++
			}
		}})
		for range 3 {
			noError(t, p.Submit(t.Context(), sleep(time.Second)))
		}
		synctest.Wait()
		go p.Close()
		synctest.Wait()
		if err := p.Drain(t.Context()); err != nil || notified != 2 {
			t.Errorf("%v; OnDone was told of %d dropped jobs of 2", err, notified)
		}
	})
}
