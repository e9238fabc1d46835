package contestant

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/lab/usage"
)

// Job is a contestant's connection to its parent.
type Job struct {
	input []byte
	out   *json.Encoder // of Process.said, a part at a time
}

// Input decodes what the parent sent.
func (j *Job) Input(into any) error { return json.Unmarshal(j.input, into) }

// Ready tells the parent that a server contestant is ready, and how to reach it.
func (j *Job) Ready(v any) error { return j.out.Encode(map[string]any{"Ready": v}) }

// Role is what a contestant does. Its ctx ends when the parent stops it or dies, or
// the process gets a termination signal; its return value is the result.
type Role func(ctx context.Context, job *Job) (any, error)

// Func makes a role of a function from its input to its result.
func Func[In, Out any](f func(context.Context, In) (Out, error)) Role {
	return func(ctx context.Context, job *Job) (any, error) {
		var in In
		if err := job.Input(&in); err != nil {
			return nil, err
		}
		return f(ctx, in)
	}
}

// played are the roles of this program.
var played map[string]Role

// Main runs a role if this process was started as a contestant, and then returns its
// exit code and true. Call it first thing in main, and in TestMain
// of tests that start contestants.
func Main(roles map[string]Role) (code int, ok bool) {
	played = roles
	if len(os.Args) != 3 || os.Args[1] != arg {
		return 0, false
	}
	job := &Job{out: json.NewEncoder(os.Stdout)}
	os.Stdout = os.Stderr // output of measured code must not look like a result
	result, err := play(os.Args[2], job)
	if err == nil {
		_, peak := usage.Resident(os.Getpid())
		err = job.out.Encode(map[string]any{"Result": result, "PeakRSS": peak})
	}
	if err == nil {
		return 0, true
	}
	if job.out.Encode(map[string]any{"Error": err.Error()}) != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1, true
}

// Program is the main of a program that has nothing but roles.
func Program(roles map[string]Role) {
	code, ok := Main(roles)
	if !ok {
		fmt.Fprintln(os.Stderr, "This is a part of the laboratory, which starts it: run 'spillway lab'.")
		code = 2
	}
	os.Exit(code)
}

func play(name string, job *Job) (any, error) {
	role, found := played[name]
	if !found {
		return nil, fmt.Errorf("unknown contestant %q: this program knows %s", name, strings.Join(slices.Sorted(maps.Keys(played)), ", "))
	}
	stdin := bufio.NewReader(os.Stdin)
	var err error
	if job.input, err = stdin.ReadBytes('\n'); err != nil {
		return nil, fmt.Errorf("reading the input: %w", err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // ends when the parent closes it or dies
		cancel()
		time.Sleep(stopGrace)
		os.Exit(1) // ends a role that ignores its context
	}()
	return role(ctx, job)
}
