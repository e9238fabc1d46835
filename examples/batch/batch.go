package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/workerpool"
)

// batch is numbered tasks. A task is done, failed, cut short while it ran, or
// was never started; run returns when each is one of these.
type batch struct {
	tasks, from int // those numbered from..tasks-1 are to be done
	workers     int
	do          func(ctx context.Context, n int) error

	done, failed, cut atomic.Int64
	refused           error // why not all were submitted

	mu       sync.Mutex
	ended    []bool    // by number: done or failed
	failures []failure // those of the lowest numbers, in order
}

type failure struct {
	task int
	line string
}

// listed is how many failures the result names.
const listed = 5

// run works until every task has ended or ctx has. The error is about the
// settings; what became of the tasks is in the result.
func (b *batch) run(ctx context.Context, p *progress) error {
	pool, err := workerpool.New(workerpool.Config{Name: "batch", MaxWorkers: b.workers})
	if err != nil {
		return err
	}
	b.ended = make([]bool, b.tasks)
	stop := p.start(b)
	b.feed(ctx, pool.Submit)
	// Without ctx: tasks under way see its end themselves and are waited for.
	err = pool.Drain(context.WithoutCancel(ctx))
	stop()
	return err
}

// feed submits the tasks until ctx ends or one is refused.
func (b *batch) feed(ctx context.Context, submit func(context.Context, workerpool.Job) error) {
	for n := b.from; n < b.tasks; n++ {
		// A full queue makes this wait; that is all the flow control there is.
		if b.refused = submit(ctx, func(ctx context.Context) error { return b.task(ctx, n) }); b.refused != nil {
			return // and no task that has not started will, if that is because ctx has ended
		}
	}
}

// task does task n. A panic is one failed task, not the end of the others.
func (b *batch) task(ctx context.Context, n int) (err error) {
	err = errors.New("it called runtime.Goexit")
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		b.account(ctx, n, err)
	}()
	return b.do(ctx, n)
}

func (b *batch) account(ctx context.Context, n int, err error) {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		b.cut.Add(1)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended[n] = true
	if err == nil {
		b.done.Add(1)
		return
	}
	b.failed.Add(1)
	line, _, _ := strings.Cut(err.Error(), "\n")
	at, _ := slices.BinarySearchFunc(b.failures, n, func(f failure, n int) int { return f.task - n })
	b.failures = slices.Insert(b.failures, at, failure{n, line})
	b.failures = b.failures[:min(len(b.failures), listed)]
}

// left is how many tasks are neither done nor failed.
func (b *batch) left() int { return b.tasks - b.from - int(b.done.Load()+b.failed.Load()) }

// result says what became of the tasks. Call it after run.
func (b *batch) result() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s of %s done, %s failed\n", number(b.done.Load()), number(int64(b.tasks-b.from)), number(b.failed.Load()))
	for _, f := range b.failures {
		fmt.Fprintf(&s, "  task %d: %s\n", f.task, f.line)
	}
	if more := int(b.failed.Load()) - len(b.failures); more > 0 {
		fmt.Fprintf(&s, "  and %s more\n", number(int64(more)))
	}
	if left := b.left(); left > 0 {
		cut := b.cut.Load()
		why := "interrupted"
		if r, ok := errors.AsType[*spillway.Rejection](b.refused); ok {
			why = r.Error()
		}
		fmt.Fprintf(&s, "%s: %s cut short, %s never started\n", why, number(cut), number(int64(left)-cut))
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
