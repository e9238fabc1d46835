// Command batch works through many small tasks on a pool, with live progress
// and a clean end on Ctrl-C: it says what was done and what was not, and where
// to go on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `batch works through tasks that wait for something, such as a database, at most
so many at once.

  batch                           100,000 tasks of 1 to 3 ms
  batch -tasks 500 -work 100ms    fewer and longer ones
  batch -workers 64               more at once
  batch -from 43150               go on where an interrupted run stopped
  batch 2>&1 | cat                on a pipe: a line now and then, no animation

The result goes to standard output, progress to standard error. Ctrl-C stops:
tasks under way are cut short, tasks that wait are never started, and both are
told from those that were done. Exit codes: 0 all done; 1 some failed or were
not started; 2 bad input; 130 interrupted.

`

// mostTasks is how many a batch may have: it keeps a byte for each.
const mostTasks = 1_000_000_000

func parse(args []string, stderr io.Writer) (*batch, error) {
	var work time.Duration
	var share float64
	b := &batch{}
	flags := flag.NewFlagSet("batch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.IntVar(&b.tasks, "tasks", 100_000, "how many tasks there are")
	flags.IntVar(&b.from, "from", 0, "number of the first task to do; they count from 0")
	flags.IntVar(&b.workers, "workers", 0, "tasks at once; 0 leaves it to the pool")
	flags.DurationVar(&work, "work", 2*time.Millisecond, "how long a task takes on average")
	flags.Float64Var(&share, "fail", 0.0005, "share of tasks that fail, 0 to 1")
	if err := flags.Parse(args); err != nil {
		return b, err
	}
	switch {
	case flags.NArg() > 0:
		return b, fmt.Errorf("unexpected %q: settings are flags, see -h", flags.Arg(0))
	case b.tasks < 1 || b.tasks > mostTasks || b.from < 0 || b.from >= b.tasks:
		return b, fmt.Errorf("tasks %d from %d: want at least one, at most %d, and to begin with one of them", b.tasks, b.from, mostTasks)
	case work < 0 || share < 0 || share > 1:
		return b, errors.New("-work cannot be negative, -fail is a share from 0 to 1")
	}
	b.do = pretend(work, share)
	return b, nil
}

// run does the batch and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = b.run(ctx, newProgress(stderr, isTerminal(stderr)))
	}
	if err != nil {
		fmt.Fprintln(stderr, "batch:", err)
		return 2
	}
	return b.tell(ctx, stdout)
}

// tell writes the result and returns the exit code.
func (b *batch) tell(ctx context.Context, stdout io.Writer) int {
	fmt.Fprint(stdout, b.result())
	switch {
	case ctx.Err() != nil && b.left() > 0:
		return 130
	case b.failed.Load() > 0 || b.left() > 0:
		return 1
	}
	return 0
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

var errPretended = errors.New("the record is damaged")

// pretend stands for a task: it waits for half to one and a half of d, and that
// share of the tasks, spread evenly, fails.
func pretend(d time.Duration, share float64) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		timer := time.NewTimer(d/2 + d*time.Duration(n%101)/100)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if int(float64(n+1)*share) > int(float64(n)*share) {
			return errPretended
		}
		return nil
	}
}
