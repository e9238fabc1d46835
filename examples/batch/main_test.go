package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/workerpool"
)

func TestEveryTaskIsDoneOnce(t *testing.T) {
	var times [1000]atomic.Int32
	b := batch{tasks: len(times), from: 10, workers: 8, do: func(_ context.Context, n int) error { times[n].Add(1); return nil }}
	if err := b.run(t.Context(), newProgress(io.Discard, false)); err != nil {
		t.Fatal(err)
	}
	for n := range times {
		if got, want := times[n].Load(), int32(min(1, n/10)); got != want {
			t.Errorf("task %d was done %d times, want %d", n, got, want)
		}
	}
	if got := b.result(); got != "990 of 990 done, 0 failed\n" {
		t.Error(got)
	}
}

func TestFailuresAndPanicsAreOneTaskEach(t *testing.T) {
	b := batch{tasks: 100, workers: 1, do: func(_ context.Context, n int) error {
		switch {
		case n == 3:
			panic("boom")
		case n%10 == 0:
			return errPretended
		}
		return nil
	}}
	if err := b.run(t.Context(), newProgress(io.Discard, true)); err != nil {
		t.Fatal(err)
	}
	want := "89 of 100 done, 11 failed\n  task 0: the record is damaged\n  task 3: panic: boom\n  task 10: the record is damaged\n" +
		"  task 20: the record is damaged\n  task 30: the record is damaged\n  and 6 more\n"
	if got := b.result(); got != want {
		t.Error(got)
	}
}

func TestAnInterruptTellsDoneFromCutFromNeverStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		// Two at a time, a second each; interrupted in the middle of the third
		// second.
		b := batch{tasks: 100_000, workers: 2, do: func(ctx context.Context, n int) error {
			switch n {
			case 0:
				panic("boom") // named again by -from, it would panic again
			case 1:
				return errPretended
			}
			return pretend(time.Second, 0)(ctx, 50) // exactly a second
		}}
		time.AfterFunc(2500*time.Millisecond, interrupt)
		if err := b.run(ctx, newProgress(io.Discard, false)); err != nil {
			t.Fatal(err)
		}
		want := "4 of 100,000 done, 2 failed\n  task 0: panic: boom\n  task 1: the record is damaged\n" +
			"interrupted: 2 cut short, 99,992 never started\n" +
			"go on with -from 6: nothing before it is left (some after it may be done)\n"
		if got := b.result(); got != want {
			t.Error(got)
		}
	})
}

// What the pool refused was forgotten: "3 of 10 done, 0 failed", and exit code 0.
func TestTasksThatWereRefusedAreNotSuccess(t *testing.T) {
	b := batch{tasks: 10, ended: make([]bool, 10), do: func(context.Context, int) error { return nil }}
	room := 3
	b.feed(t.Context(), func(ctx context.Context, job workerpool.Job) error {
		if room == 0 {
			return &spillway.Rejection{Reason: spillway.ReasonWaitTooLong}
		}
		room--
		return job(ctx)
	})
	var stdout bytes.Buffer
	code := b.tell(t.Context(), &stdout)
	if got := stdout.String(); code != 1 || !strings.Contains(got, "3 of 10 done") || !strings.Contains(got, ": 0 cut short, 7 never started\ngo on with -from 3") || strings.Contains(got, "interrupted") {
		t.Errorf("exit code %d: %s", code, got)
	}
}

func TestTheCommand(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		args []string
		code int
		says string
	}{
		{t.Context(), []string{"-tasks", "200", "-work", "0", "-fail", "0"}, 0, "200 of 200 done, 0 failed"},
		{t.Context(), []string{"-tasks", "200", "-work", "0", "-fail", "0.5"}, 1, "100 of 200 done, 100 failed"},
		{t.Context(), []string{"-tasks", "200", "-from", "150", "-work", "0", "-fail", "0"}, 0, "50 of 50 done"},
		{gone, nil, 130, "interrupted: 0 cut short, 100,000 never started"},
		{t.Context(), []string{"-h"}, 0, "Exit codes"},
		{t.Context(), []string{"now"}, 2, "unexpected"},
		{t.Context(), []string{"-tasks", "0"}, 2, "at least one"},
		{t.Context(), []string{"-tasks", "9223372036854775807"}, 2, "at most"}, // used to crash
		{t.Context(), []string{"-fail", "2"}, 2, "share"},
		{t.Context(), []string{"-workers", "-1"}, 2, "MaxWorkers"},
		{t.Context(), []string{"-x"}, 2, "not defined"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(c.ctx, c.args, &stdout, &stderr); code != c.code || !strings.Contains(stdout.String()+stderr.String(), c.says) {
			t.Errorf("%v: exit code %d, want %d\n%s%s", c.args, code, c.code, &stdout, &stderr)
		}
	}
}
