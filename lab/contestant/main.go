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

	"github.com/spillway-go/spillway/load/usage"
)

// Ready tells the parent that a server contestant is ready, and how to reach it.
type Ready func(v any) error

// Role is what a contestant does with its input, made by Func or Server. Its ctx ends
// when the parent stops it or dies, or the process gets a termination signal.
type Role func(ctx context.Context, input []byte, ready Ready) (any, error)

// Func makes a role of a function from its input to its result.
func Func[In, Out any](f func(context.Context, In) (Out, error)) Role {
	return Server(func(ctx context.Context, in In, _ Ready) (Out, error) { return f(ctx, in) })
}

// Server makes a role of a function that says when it is ready.
func Server[In, Out any](f func(context.Context, In, Ready) (Out, error)) Role {
	return func(ctx context.Context, input []byte, ready Ready) (any, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, err
		}
		return f(ctx, in, ready)
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
	out := json.NewEncoder(os.Stdout) // of Process.said, a part at a time
	os.Stdout = os.Stderr             // output of measured code must not look like a result
	result, err := play(os.Args[2], func(v any) error { return out.Encode(map[string]any{"Ready": v}) })
	if err == nil {
		_, peak := usage.Resident(os.Getpid())
		err = out.Encode(map[string]any{"Result": result, "PeakRSS": peak})
	}
	if err == nil {
		return 0, true
	}
	if out.Encode(map[string]any{"Error": err.Error()}) != nil {
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

func play(name string, ready Ready) (any, error) {
	role, found := played[name]
	if !found {
		return nil, fmt.Errorf("unknown contestant %q: this program knows %s", name, strings.Join(slices.Sorted(maps.Keys(played)), ", "))
	}
	stdin := bufio.NewReader(os.Stdin)
	input, err := stdin.ReadBytes('\n')
	if err != nil {
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
	return role(ctx, input, ready)
}
