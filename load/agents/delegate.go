package agents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

// A command that should not link a network's client lets another program coordinate:
// it writes an Order to its standard input, and reads events from its standard
// output, a line each. When standard input ends, the load is stopped.

// Order is what that program is to do.
type Order struct {
	Load     json.RawMessage `json:"load"`
	Interval time.Duration   `json:"interval_ns"`
	Agents   int             `json:"agents"`
	Wait     time.Duration   `json:"wait_ns"`
	Server   Server          `json:"server"` // without a URL agents are started on this machine
}

// event is what it says.
type event struct {
	Live   *loadgen.Snapshot `json:"live,omitempty"`
	Log    string            `json:"log,omitempty"`
	Report *Report           `json:"report,omitempty"`
	Failed *failure          `json:"failed,omitempty"`
}

type failure struct {
	Why         string `json:"why"`
	Input       bool   `json:"input,omitempty"` // the user can correct it
	Interrupted bool   `json:"interrupted,omitempty"`
}

// ErrInput matches errors of Delegate that other input would correct.
var ErrInput = errors.New("the input")

type inputError struct{ why string }

func (e inputError) Error() string   { return e.why }
func (inputError) Is(err error) bool { return err == ErrInput }

// Delegate starts the program and returns its report. progress and log are called by
// one goroutine. When ctx ends the program stops the load, and Delegate returns
// what was measured until then.
func Delegate(ctx context.Context, program *exec.Cmd, o Order, progress func(loadgen.Snapshot), log func(string)) (*Report, error) {
	order, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	stdin, err := program.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := program.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := program.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { stdin.Close() })
	defer stop()
	_, _ = stdin.Write(append(order, '\n')) // if it fails, so does the program
	report, failed := listen(stdout, progress, log)
	stdin.Close()
	ended := program.Wait()
	switch {
	case failed != nil:
		return nil, failed
	case report == nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case report == nil:
		return nil, fmt.Errorf("the program that coordinates the agents ended without a report (%v)", ended)
	}
	return report, nil
}

// listen reads events until there are no more.
func listen(r io.Reader, progress func(loadgen.Snapshot), log func(string)) (report *Report, failed error) {
	for lines := json.NewDecoder(r); ; {
		var e event
		if err := lines.Decode(&e); err != nil {
			_, _ = io.Copy(io.Discard, r) // whoever writes it is not held up
			return report, failed
		}
		switch f := e.Failed; {
		case e.Live != nil:
			progress(*e.Live)
		case e.Report != nil && e.Report.Result != nil:
			report = e.Report
		case f != nil && f.Interrupted:
			failed = context.Canceled
		case f != nil && f.Input:
			failed = inputError{f.Why}
		case f != nil:
			failed = errors.New(f.Why)
		case e.Log != "":
			log(e.Log)
		}
	}
}

// Obey is the other side of Delegate: it reads an order, does it, and returns the
// program's exit code. The context that coordinate gets ends with the input.
func Obey(in io.Reader, out io.Writer, coordinate func(context.Context, Order, Config) (*Report, error)) int {
	say := json.NewEncoder(out)
	var o Order
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		_ = say.Encode(event{Failed: &failure{Why: "an order that cannot be read: " + err.Error()}})
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		cancel()
	}()
	said := make(chan event, 64) // Log and Progress are called by several goroutines
	written := make(chan struct{})
	go func() {
		defer close(written)
		for e := range said {
			_ = say.Encode(e) // if nobody reads it, the input has ended, too
		}
	}()
	report, err := coordinate(ctx, o, Config{
		Load: o.Load, Interval: o.Interval, Agents: o.Agents, Wait: o.Wait,
		Progress: func(s loadgen.Snapshot) { said <- event{Live: &s} }, Log: func(line string) { said <- event{Log: line} },
	})
	if err != nil {
		_, refused := errors.AsType[*Refusal](err)
		input := refused || errors.Is(err, ErrNobody) || errors.Is(err, ErrInput)
		said <- event{Failed: &failure{err.Error(), input, errors.Is(err, context.Canceled)}}
	} else {
		said <- event{Report: report}
	}
	close(said)
	<-written
	if err != nil {
		return 1
	}
	return 0
}

// Input makes an error one that other input would correct.
func Input(err error) error { return inputError{err.Error()} }
