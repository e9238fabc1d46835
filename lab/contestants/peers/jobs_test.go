package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/internal/labtest"
)

func TestMain(m *testing.M) {
	labtest.Main(m, map[string]contestant.Role{"panic": contestant.Func(play)})
}

// The questions about jobs, in the order of the table.
var aboutJobs = []question[library]{
	{"A job panics, and no caller waits for it", func(t *testing.T, l library) string { return panics(t, l, false) }},
	{"A job panics, and a caller waits", func(t *testing.T, l library) string { return panics(t, l, true) }},
	{"A job fails, and a caller waits", fails},
	{"A result of any type", calls},
	{"The pool is full, and the caller will not wait", refuses},
	{"The pool is full, and the caller's context ends while it waits", waits},
	{"A job's context ends before its turn", ends},
	{"A job of higher priority comes later", overtakes},
	{"A job is submitted after the stop", late},
	{"A submitter waits for room at the stop", caught},
	{"The stop has a deadline, and a job goes on", stops},
}

func TestTheTableOfJobsIsWhatTheLibrariesDo(t *testing.T) {
	compare(t, "jobs.md", aboutJobs, libraries, func(l library) string { return l.name }, func(l library) bool { return !l.shares })
}

// playing is what the child process of a question about panics is asked.
type playing struct {
	Library string
	Waits   bool
}

// panics asks in a process of its own, which may end.
func panics(t *testing.T, l library, waits bool) string {
	var said string
	if _, err := contestant.Run(t.Context(), contestant.Spec{Role: "panic", Input: playing{l.name, waits}}, &said); err != nil {
		t.Log(err)
		return "**the process ends**"
	}
	return said
}

func play(ctx context.Context, p playing) (said string, err error) {
	i := slices.IndexFunc(libraries, func(l library) bool { return l.name == p.Library })
	r := libraries[i].open(ctx)
	if !p.Waits {
		_ = r.submit(ctx, broken)
		another := make(chan struct{})
		_ = r.submit(ctx, func(context.Context) error { close(another); return nil })
		<-another // has its turn once the panic has left a deferred call, or was recovered
		recovered(ctx)
		return "the process goes on", ctx.Err()
	}
	if r.wait == nil {
		return "cannot wait", nil
	}
	defer func() {
		if recover() != nil {
			said = "raised again where it waits"
		}
	}()
	_ = r.add(broken)
	if err := r.wait(); err != nil {
		return "returned as an error", nil
	}
	recovered(ctx) // a deferred call of the library may have ended the wait
	return "nobody is told", nil
}

func broken(context.Context) error { panic("broken") }

// recovered waits until the panic is recovered, or ends the process.
func recovered(ctx context.Context) {
	for ctx.Err() == nil && panicking() {
		runtime.Gosched()
	}
}

// panicking reports whether the panic of the broken job is under way: the job stays on its
// stack until somebody recovers, or the process has ended.
func panicking() bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("/peers.broken("))
}

func fails(t *testing.T, l library) string {
	r := l.open(t.Context())
	if r.wait == nil {
		r.clean()
		return "cannot wait"
	}
	defer r.clean()
	failure := errors.New("broken")
	_ = r.add(func(context.Context) error { return failure })
	if errors.Is(r.wait(), failure) {
		return "returned"
	}
	return "nobody is told"
}

func calls(t *testing.T, l library) string {
	r := l.open(t.Context())
	defer r.clean()
	if r.call == nil {
		return "no"
	}
	if got, err := r.call(func() (int, error) { return 42, nil }); got != 42 || err != nil {
		t.Error(l.name, got, err)
	}
	return "yes"
}

func refuses(t *testing.T, l library) string {
	r, release := full(t.Context(), l)
	defer r.clean()
	defer release()
	if r.try == nil {
		return "cannot refuse"
	}
	return refusal(r.try(nothing))
}

// refusal says what an error tells a caller.
func refusal(err error) string {
	rej, ok := errors.AsType[*spillway.Rejection](err)
	switch {
	case err == nil:
		return "not refused"
	case ok && rej.RetryAfter > 0:
		return "refused, with a reason and a time to come back"
	case ok:
		return "refused, with a reason"
	}
	return "refused"
}

func waits(t *testing.T, l library) string {
	r, release := full(t.Context(), l)
	defer r.clean()
	defer release()
	if !r.contexts {
		return "it takes no context"
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.submit(ctx, nothing) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(l.name, err)
	}
	return "the wait ends"
}

func ends(t *testing.T, l library) string {
	ctx, cancel := context.WithCancel(t.Context())
	r, release := held(ctx, l)
	ran := false
	var added sync.WaitGroup
	added.Go(func() { _ = r.add(func(context.Context) error { ran = true; return nil }) })
	settle(l)
	cancel()
	release()
	added.Wait()
	if r.wait != nil {
		_ = r.wait()
	} else { // its only worker takes the next job after it
		after := make(chan struct{})
		if err := r.submit(none, func(context.Context) error { close(after); return nil }); err != nil {
			t.Error(l.name, err)
		}
		<-after
	}
	r.clean()
	if ran {
		return "it is run all the same"
	}
	return "it is not run"
}

func overtakes(t *testing.T, l library) string {
	r, release := held(t.Context(), l)
	if r.urgent == nil {
		release()
		r.clean()
		return "waits for its turn"
	}
	var order []string
	both := make(chan struct{})
	must(0, r.submit(none, func(context.Context) error { order = append(order, "first"); close(both); return nil }))
	must(0, r.urgent(func(context.Context) error { order = append(order, "urgent"); return nil }))
	release()
	<-both
	r.clean()
	if order[0] != "urgent" {
		t.Error(l.name, order)
	}
	return "runs first"
}

func late(t *testing.T, l library) string {
	r := l.open(t.Context())
	if r.stop == nil {
		r.clean()
		return "cannot be stopped"
	}
	if err := r.stop(await.Context(t, "an idle pool stops")); err != nil {
		t.Error(l.name, err)
	}
	return attempt(func() error { return r.submit(none, nothing) })
}

// attempt says how a submission ended.
func attempt(submit func() error) (said string) {
	defer func() {
		if recover() != nil {
			said = "**panic**"
		}
	}()
	if err := submit(); err != nil {
		return "an error"
	}
	return "accepted"
}

func caught(t *testing.T, l library) string {
	r, release := full(t.Context(), l)
	if r.stop == nil {
		release()
		r.clean()
		return "cannot be stopped"
	}
	said := make(chan string)
	const submitters = 32
	for range submitters {
		go func() { said <- attempt(func() error { return r.submit(none, nothing) }) }()
	}
	settle(l)
	_ = r.stop(deadline(t, l))
	if r.closed != nil {
		await.True(t, "the stop has begun", r.closed)
	}
	release()
	var all []string
	for range submitters {
		all = append(all, <-said)
	}
	r.clean()
	slices.Sort(all)
	all = slices.Compact(all)
	if slices.Contains(all, "**panic**") {
		return "**panic**"
	}
	return fmt.Sprint(all[0], map[bool]string{true: ", or accepted"}[len(all) > 1])
}

func stops(t *testing.T, l library) string {
	r, release := held(t.Context(), l)
	defer r.clean()
	defer release()
	if r.stop == nil {
		return "cannot be stopped"
	}
	err := r.stop(deadline(t, l))
	if d, ok := errors.AsType[*spillway.DrainError](err); ok && d.Running == 1 {
		return "ends with it, and says what is left"
	} else if err == nil {
		return "says that all is done"
	}
	return "ends with it"
}

func nothing(context.Context) error { return nil }

// held is a library whose only worker is busy until release is called.
func held(ctx context.Context, l library) (r runner, release func()) {
	r = l.open(ctx)
	started, hold := make(chan struct{}), make(chan struct{})
	must(0, r.submit(none, func(context.Context) error { close(started); <-hold; return nil }))
	<-started
	return r, func() { close(hold) }
}

// full is a library whose only worker is busy and whose queue is full.
func full(ctx context.Context, l library) (r runner, release func()) {
	r, release = held(ctx, l)
	for range r.queue {
		must(0, r.submit(none, nothing))
	}
	return r, release
}

// settle lets other goroutines go on until they wait. Where that is not known the answer
// is the same if some of them come later.
func settle(l library) {
	if !l.shares {
		synctest.Wait()
		return
	}
	for range 1000 {
		runtime.Gosched()
	}
}

// deadline passes after a while of virtual time. On a real clock it has passed.
func deadline(t *testing.T, l library) context.Context {
	at := time.Now()
	if !l.shares {
		at = at.Add(time.Second)
	}
	ctx, cancel := context.WithDeadline(none, at)
	t.Cleanup(cancel)
	return ctx
}
