// Command spillway runs the experiments and the tools around them.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/report"
)

func main() {
	if code, ok := contestant.Main(roles()); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type commandLine struct {
	Demo       demoCmd       `cmd:"" help:"Half a minute that shows the point: one service through a storm, unprotected, behind a semaphore, behind a limiter."`
	Lab        labCmd        `cmd:"" help:"Re-measure published claims and say which of them hold."`
	Load       loadCmd       `cmd:"" help:"Send load to a URL; outcomes apart, latency from the intended start."`
	Capacity   capacityCmd   `cmd:"" help:"Find the highest rate at which a URL keeps an SLO, and recommend concurrency, queue and replicas."`
	Compare    compareCmd    `cmd:"" help:"Say whether one URL or command is better than another, beyond noise."`
	Sim        simCmd        `cmd:"" help:"Simulate a service under overload: policies side by side, in virtual time."`
	Proxy      proxyCmd      `cmd:"" help:"Put a limiter in front of any HTTP service."`
	Serve      elsewhere     `cmd:"" passthrough:"" help:"Run the reference service: a patient API under one of five concurrency patterns."`
	Token      elsewhere     `cmd:"" passthrough:"" help:"Write a token for that service to standard output; see spillway token --help."`
	Audit      elsewhere     `cmd:"" passthrough:"" help:"Verify that service's records of accesses; see spillway audit --help."`
	Queue      elsewhere     `cmd:"" passthrough:"" help:"Look into a durable queue and put it right: counts, dead letters, retry, purge."`
	Completion completionCmd `cmd:"" help:"Print a script with which a shell completes commands and flags."`
	Version    versionCmd    `cmd:"" help:"Print the version."`

	Config configFlag `placeholder:"FILE" help:"Read flags from a JSON file: {\"lab\": {\"H\": {\"repeats\": 5}}, \"load\": {\"rate\": 200}}. A flag wins over its environment variable, that over the file."`
}

const description = `Spillway keeps Go services standing under overload; this command carries the laboratory that judges it.

Start here:
  spillway demo                       half a minute: a service through a storm, three ways side by side
  spillway lab                        a quarter of an hour: every published claim, and advice by what was found here
  spillway lab overload               twelve minutes: the same for real, from 0.5 to 10 times the capacity
  spillway lab H                      five minutes: which claims about goroutines, worker pools and sync.Pool hold here?
  spillway lab G                      five minutes: what does it cost to hand work to a goroutine?
  spillway lab G7                     three minutes: what makes fasthttp cheaper than net/http?
  spillway lab F                      three minutes: from where does it pay to ask two sources at once?
  spillway lab R                      seven minutes: what does a typed route cost, and a pooled context save?
  spillway lab B                      four minutes and half of the memory: a burst of jobs
  spillway lab load                   two minutes: what does a request cost its sender, beside wrk, hey, vegeta and k6?
  spillway lab durable                two minutes: how many jobs a second can be on disk before they are acknowledged?
  spillway serve --pattern limiter    the service that was measured, on http://localhost:8080
  export SPILLWAY_LOAD_HEADER="Authorization: Bearer $(spillway token)"
  export SPILLWAY_CAPACITY_HEADER=$SPILLWAY_LOAD_HEADER
  spillway load --rate 300 http://localhost:8080/api/v1/patients/P000042
  spillway capacity http://localhost:8080/api/v1/patients/P000042
                                      a minute and a half: how much can it do, and how should it be set?
  spillway sim retry-storm            a few seconds: an overload that feeds itself, simulated; --example shows how to describe yours

Results go to standard output, progress and errors to standard error.
Exit codes: 0 done; 1 an expectation or a measurement failed; 2 bad input; 130 Ctrl-C, after the partial result was written. Those of compare are answers: see its --help.`

type versionCmd struct{}

// Run prints what the toolchain recorded about this build.
func (versionCmd) Run(env *environment) error {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version + " " + info.GoVersion
	}
	_, err := fmt.Fprintln(env.stdout, "spillway", version)
	return err
}

// environment is what commands may access.
type environment struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	args           []string
	width          int // of the terminal behind standard error; 0: it is none
}

// status shows a line in place on a terminal, and nothing elsewhere.
func (e *environment) status(line string) {
	if e.width > 0 {
		if text := []rune(line); len(text) >= e.width { // a line that wraps cannot be replaced
			line = string(text[:e.width-1])
		}
		fmt.Fprint(e.stderr, "\r\x1b[K"+line)
	}
}

// Errors that choose the exit code; any other is 1: a requested result was not reached.
type (
	inputError struct{ error } // 2: the user can correct it by other input
	exitCode   int             // an answer, of a command that printed it, or of the parser after --help
)

func (e inputError) Unwrap() error { return e.error }
func (c exitCode) Error() string   { return fmt.Sprintf("exit code %d", int(c)) }

var errInterrupted = errors.New("interrupted: the result is partial")

func badInput(err error) error { return inputError{err} }

func isBadInput(err error) bool {
	_, ours := errors.AsType[inputError](err)
	return ours || errors.Is(err, experiment.ErrInput)
}

// run is the whole command without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runWith(ctx, args, os.Stdin, stdout, stderr)
}

func runWith(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		if v := recover(); v != nil {
			exit, ok := v.(exitCode)
			if !ok {
				panic(v)
			}
			code = int(exit)
		}
	}()
	words := withAll(spelledOut(args))
	cli := commandLine{Lab: newLabCmd(words)}
	parser := kong.Must(&cli, kong.Name("spillway"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(c int) { panic(exitCode(c)) }), kong.Resolvers(experiment.Sizes()),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}))
	environmentVariables(parser.Model.Node, "SPILLWAY")
	if len(args) > 0 && args[0] == completeArg {
		for _, line := range complete(parser.Model.Node, args[1:]) {
			fmt.Fprintln(stdout, line)
		}
		return 0
	}
	words, err := translate(parser.Model.Node, words)
	if err != nil {
		return reportError(stderr, badInput(err))
	}
	parsed, err := parser.Parse(words)
	if err != nil {
		return reportError(stderr, badInput(hint(err)))
	}
	out := &sink{Writer: stdout}
	env := &environment{ctx: ctx, stdin: stdin, stdout: out, stderr: stderr, args: args, width: terminalWidth(stderr)}
	err = parsed.Run(env)
	answer, answered := errors.AsType[exitCode](err)
	if answered {
		err = nil
	}
	if isBadInput(err) {
		err = fmt.Errorf("%w; see %s --help", err, commandOf(parsed))
	}
	return cmp.Or(reportError(stderr, cmp.Or(err, out.failed())), int(answer))
}

// environmentVariables gives every flag without one a variable of its command's name.
func environmentVariables(node *kong.Node, prefix string) {
	for _, f := range node.Flags {
		if len(f.Envs) == 0 && f.Name != "help" {
			f.Envs = []string{prefix + "_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))}
			f.Tag.Envs = f.Envs
		}
	}
	for _, child := range node.Children {
		environmentVariables(child, prefix+"_"+strings.ToUpper(child.Name))
	}
}

// sink is standard output. It keeps its first write error, so that not every print
// has to be checked.
type sink struct {
	io.Writer
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.Writer.Write(b)
	s.err = cmp.Or(s.err, err)
	return n, err
}

// failed returns the first write error, or nil.
func (s *sink) failed() error {
	if s.err != nil {
		return fmt.Errorf("the result is incomplete: %w", s.err)
	}
	return nil
}

// reportError prints an error as one line and returns the exit code.
func reportError(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "spillway:", strings.Join(strings.Fields(err.Error()), " "))
	switch {
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return 130
	case isBadInput(err):
		return 2
	}
	return 1
}

// hint adds a pointer to the help to the parser's error.
func hint(err error) error {
	command := "spillway"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		command = commandOf(parse.Context)
	}
	return fmt.Errorf("%w; see %s --help", err, command)
}

// commandOf is a command without its arguments.
func commandOf(ctx *kong.Context) string {
	command, _, _ := strings.Cut(strings.TrimSpace("spillway "+ctx.Command()), " <")
	return command
}

// terminalWidth is 0 if w is no terminal that can be written in place.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return 0
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return 0
	}
	return report.For(f).Width
}
