package jetstream

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
)

// The server dies with questions on the way, and is back at once. Config.Wait is longer
// than the test has patience.
func TestALostConnectionIsNoReasonToWait(t *testing.T) {
	p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
	q := open(t, Config{URL: p.url(), Wait: 10 * patience})
	running, progressed := make(chan *jobqueue.Delivery), make(chan bool)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Key == "long" {
			running <- d
			<-progressed
		}
		return nil
	})
	enqueue(t, q, jobqueue.Job{Key: "long"})
	d := <-running
	p.set(0, true)
	stored, told, asked := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { _, err := q.Enqueue(within(t), jobqueue.Job{Key: "under way"}); stored <- err }()
	go func() { told <- d.Progress(within(t)) }()
	go func() { _, err := q.Stats(within(t)); asked <- err }()
	eventually(t, "all three are under way", func() bool {
		return p.asked(`under way`, `_INBOX\S+ 4\r\n\+WPI`, `CONSUMER\.INFO`)
	})
	p.set(0, false)
	p.cut()
	if err := <-stored; err != nil {
		t.Errorf("Enqueue tries again: %v", err)
	}
	if err := <-told; err != nil && !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("Progress: %v", err)
	}
	if err := <-asked; err != nil && !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("Stats: %v", err)
	}
	close(progressed)
	eventually(t, "both jobs are done once", func() bool { s := stats(t, q); return s.Done == 2 && s.Depth == jobqueue.Depth{} })
}

// A server that answers after a second and is waited for does its work; nothing is done twice.
func TestASlowServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
	q := open(t, Config{URL: p.url(), Wait: patience})
	p.set(time.Second, false)
	const jobs = 10
	errs := make(chan error, jobs)
	for range jobs {
		go func() { _, err := q.Enqueue(within(t), jobqueue.Job{}); errs <- err }()
	}
	for range jobs {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var runs atomic.Int32
	work(t, q, func(context.Context, *jobqueue.Delivery) error { runs.Add(1); return nil })
	eventually(t, "all are done", func() bool { return q.counters.done.Load() == jobs })
	if n := runs.Load(); n != jobs {
		t.Errorf("%d jobs ran %d times", jobs, n)
	}
}

// A server that is slower than Config.Wait: the caller is told, and may send the job again
// with its key.
func TestASlowServerIsNotWaitedForLongerThanSaid(t *testing.T) {
	t.Parallel()
	server := listen(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, server.URL())
	q := open(t, Config{URL: p.url(), Wait: patience})
	q.cfg.Wait = 500 * time.Millisecond // of the next call
	p.set(3*time.Second, false)
	if _, err := q.Enqueue(within(t), jobqueue.Job{Key: "k"}); !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("slower than Wait: %v", err)
	}
	q.cfg.Wait = patience
	p.set(0, false)
	eventually(t, "the job that was sent again is a duplicate", func() bool {
		r, err := q.Enqueue(within(t), jobqueue.Job{Key: "k"})
		return err == nil && r.Duplicate
	})
	var runs atomic.Int32
	work(t, q, func(context.Context, *jobqueue.Delivery) error { runs.Add(1); return nil })
	eventually(t, "it is done", func() bool { s := stats(t, q); return s.Done == 1 && s.Depth == jobqueue.Depth{} })
	if n := runs.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// An engine that answers all that Open asks, each in less than Config.Wait, is not given up
// because all of it takes longer: a busy disk is no engine that is away.
func TestASlowServerIsOpenedAnswerByAnswer(t *testing.T) {
	t.Parallel()
	p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
	p.set(600*time.Millisecond, false)
	cfg, began := Config{URL: p.url(), Wait: 10 * time.Second, MaxInFlight: 1}, time.Now()
	if open(t, cfg); time.Since(began) < cfg.Wait {
		t.Errorf("opened in less than %s: this shows nothing, the proxy must be slower", cfg.Wait)
	}
}
