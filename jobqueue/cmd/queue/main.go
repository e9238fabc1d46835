// Command queue inspects and repairs a durable queue. See its --help. "spillway queue" builds and
// runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type commands struct {
	place

	Inspect inspectCmd `cmd:"" help:"Count the jobs: by priority, ready, delayed, in flight and dead."`
	Dead    deadCmd    `cmd:"" help:"List dead letters, the oldest first: jobs that failed for good, and why."`
	Retry   retryCmd   `cmd:"" help:"Make dead letters jobs again, with no attempt counted."`
	Purge   purgeCmd   `cmd:"" help:"Remove jobs without running them."`
}

const description = `Look into a durable queue and put it right.

The queue is in a NATS server, named by --url, or in the folder of an embedded server that no process uses at the moment, named by --dir. What uses a folder can only be asked itself.

When jobs have failed for good:
  spillway queue inspect --url nats://localhost:4222     how many are there?
  spillway queue dead                                    which, and why?
  (repair what made them fail)
  spillway queue retry 17 18                             try these again
  spillway queue retry --all                             or all of them
  spillway queue purge dead --yes                        or forget them

Set SPILLWAY_QUEUE_URL to leave out --url. Results go to standard output, errors to standard error.
Exit codes: 0 done; 1 failed; 2 bad input; 130 Ctrl-C.`

// errInput marks errors that other input can correct.
var errInput = errors.New("bad input")

type inputError struct{ error }

func (e inputError) Is(target error) bool { return target == errInput }
func (e inputError) Unwrap() error        { return e.error }

func badInput(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// console receives the results of a command.
type console struct {
	context.Context
	out, err io.Writer
}

// run executes the command and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "queue" { // run by spillway, which passes the name of its command
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var c commands
	exit := -1
	parser := kong.Must(&c, kong.Name("spillway queue"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(code int) {
			if exit < 0 {
				exit = code
			}
		}), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}))
	asked, err := parser.Parse(args)
	switch {
	case exit >= 0: // --help has been printed
		return exit
	case err != nil:
		return report(stderr, badInput("%w; see spillway queue --help", err))
	}
	return report(stderr, asked.Run(&console{ctx, stdout, stderr}, &c.place))
}

// report prints an error as one line and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "spillway queue:", discreetly(strings.Join(strings.Fields(err.Error()), " ")))
	switch {
	case errors.Is(err, errInput):
		return 2
	case errors.Is(err, context.Canceled):
		return 130
	}
	return 1
}

// login matches the part of an address that may hold a password.
var login = regexp.MustCompile(`(://)[^\s/]+@`)

// discreetly hides users and passwords in addresses, because the text may go into logs.
func discreetly(text string) string { return login.ReplaceAllString(text, "$1[redacted]@") }
