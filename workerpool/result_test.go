package workerpool

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

type jobKey struct{}

// A Result once did not identify its job.
func TestAResultSaysWhichJobItWas(t *testing.T) {
	var mu sync.Mutex
	got := map[string]error{}
	p, err := New(Config{MaxWorkers: 1, QueueSize: 10, OnDone: func(r Result) {
		mu.Lock()
		defer mu.Unlock()
		name, _ := r.Context.Value(jobKey{}).(string)
		got[name] = r.Err
	}})
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) context.Context { return context.WithValue(t.Context(), jobKey{}, name) }
	started, release := make(chan struct{}), make(chan struct{})
	failed := errors.New("failed")
	submit := func(ctx context.Context, job Job) {
		if err := p.Submit(ctx, job); err != nil {
			t.Error(err)
		}
	}
	submit(named("fails"), func(context.Context) error { close(started); <-release; return failed })
	<-started
	left, leave := context.WithCancel(named("cancelled"))
	submit(left, func(context.Context) error { return nil })
	leave()
	submit(named("panics"), func(context.Context) error { panic("boom") })
	close(release)
	if err := p.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 3 || !errors.Is(got["fails"], failed) || !errors.Is(got["cancelled"], context.Canceled) {
		t.Errorf("told of %v", got)
	}
	if _, ok := errors.AsType[*spillway.PanicError](got["panics"]); !ok {
		t.Errorf("the panic is %v", got["panics"])
	}
}

func TestNewNamesAllThatIsWrong(t *testing.T) {
	_, err := New(Config{MaxWorkers: -1, IdleTimeout: -time.Second, GrowAt: 2, OnPanic: 9})
	for _, field := range []string{"MaxWorkers", "IdleTimeout", "GrowAt", "OnPanic"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
}

func TestALawHasOneOwner(t *testing.T) {
	law := limit.NewAdaptive()
	l, err := limiter.New(limiter.Config{Law: law})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := New(Config{Law: law}); err == nil || !strings.Contains(err.Error(), "belongs to another") {
		t.Errorf("a limiter's law was given to a pool: %v", err)
	}
}
