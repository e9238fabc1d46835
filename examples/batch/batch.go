package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/workerpool"
)

// batch is numbered tasks. A task is done, failed, cut short while it ran, or
// was never started; run returns when each is one of these.
type batch struct {
	tasks, from int // those numbered from..tasks-1 are to be done
	workers     int
	do          func(ctx context.Context, n int) error

	done, failed, cut atomic.Int64

	mu       sync.Mutex
	ended    []bool // by number: done or failed
	failures []string
}

// listed is how many failures the result names.
const listed = 5

// run works until every task has ended or ctx has. The error is about the
// settings; what became of the tasks is in the result.
func (b *batch) run(ctx context.Context, p *progress) error {
	b.ended = make([]bool, b.tasks)
	pool, err := workerpool.New(workerpool.Config{
		Name: "batch", MaxWorkers: b.workers,
		OnDone: func(r workerpool.Result) { // a panic is one failed task, not the end of the others
			if r.Started && r.Err != nil {
				b.trouble(ctx, r.Err)
			}
		},
	})
	if err != nil {
		return err
	}
	stop := p.start(b)
	for n := b.from; n < b.tasks; n++ {
		// A full queue makes this wait; that is all the flow control there is.
		if pool.Submit(ctx, func(ctx context.Context) error { return b.task(ctx, n) }) != nil {
			break // ctx has ended, and with it every task that has not started
		}
	}
	// Without ctx: tasks under way see its end themselves and are waited for.
	err = pool.Drain(context.WithoutCancel(ctx))
	stop()
	return err
}

func (b *batch) task(ctx context.Context, n int) error {
	cut := false
	defer func() { // after a panic too: it would only panic again
		b.mu.Lock()
		b.ended[n] = !cut
		b.mu.Unlock()
	}()
	switch err := b.do(ctx, n); {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		cut = true
		return err
	case err != nil:
		return fmt.Errorf("task %d: %w", n, err)
	}
	b.done.Add(1)
	return nil
}

func (b *batch) trouble(ctx context.Context, err error) {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		b.cut.Add(1)
		return
	}
	b.failed.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failures) < listed {
		line, _, _ := strings.Cut(err.Error(), "\n") // a panic brings its stack
		b.failures = append(b.failures, line)
	}
}

// left is how many tasks are neither done nor failed.
func (b *batch) left() int { return b.tasks - b.from - int(b.done.Load()+b.failed.Load()) }

// result says what became of the tasks. Call it after run.
func (b *batch) result() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s of %s done, %s failed\n", number(b.done.Load()), number(int64(b.tasks-b.from)), number(b.failed.Load()))
	for _, f := range b.failures {
		fmt.Fprintf(&s, "  %s\n", f)
	}
	if more := int(b.failed.Load()) - len(b.failures); more > 0 {
		fmt.Fprintf(&s, "  and %s more\n", number(int64(more)))
	}
	if left := b.left(); left > 0 {
		cut := b.cut.Load()
		fmt.Fprintf(&s, "interrupted: %s cut short, %s never started\n", number(cut), number(int64(left)-cut))
		fmt.Fprintf(&s, "go on with -from %d: nothing before it is left (some after it may be done)\n", b.firstLeft())
	}
	return s.String()
}

// firstLeft is the number of the first task that is neither done nor failed.
func (b *batch) firstLeft() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := b.from; n < b.tasks; n++ {
		if !b.ended[n] {
			return n
		}
	}
	return b.tasks
}

// number writes 1234567 as 1,234,567.
func number(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", number(n/1000), n%1000)
}

// rough is a duration as a person would say it.
func rough(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(10*time.Second).String(), "0s")
}
