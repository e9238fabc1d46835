// Package contestant runs measured code in a separate process under a memory cap.
// The state of one contestant's heap, goroutines or scheduler cannot affect the next
// one, and being killed is a result.
//
// The program starts itself, or a program that [Build] makes, with the hidden
// subcommand contestant and the name of a role; the input is JSON on standard input, the result is JSON on standard output.
// Standard input stays open as long as the contestant may run: when it closes,
// because the parent stops it or has died, the contestant's context ends. On Linux
// the kernel also kills it when the parent dies.
package contestant

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/load/usage"
)

const (
	// CapEnforced reports whether MemoryCap has an effect on this system.
	CapEnforced = runtime.GOOS == "linux"

	arg        = "contestant"          // the hidden subcommand
	watchEvery = 20 * time.Millisecond // between two looks at a contestant's memory
	stopGrace  = 20 * time.Second      // for a contestant to end when it is told to
)

// Exit is how a contestant ended.
type Exit struct {
	PeakRSS uint64   // bytes; 0 if the system does not report it
	Killed  string   // why it was killed for what it did: a result, not a failure
	Memory  []Memory // its resident memory over time
}

// Memory is one sample of a contestant's memory.
type Memory struct {
	At  time.Duration // since its start
	RSS uint64        // bytes
}

// Process is a running contestant.
type Process struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	started time.Time
	ready   chan struct{} // closed once said.Ready is set, or never
	done    chan struct{} // closed once everything below is final

	said struct { // each line of its standard output adds to it
		Ready, Result json.RawMessage
		Error         string
		PeakRSS       uint64 // that it measured itself, at its end
	}
	waitErr  error
	stderr   head
	exit     Exit
	killOnce sync.Once
	killed   string // why the parent killed it, other than for its memory
}

// Run starts a contestant, waits for it and decodes its result. A contestant
// that was killed for its memory is no error: Exit.Killed says so and result is
// untouched. When ctx ends the contestant is killed with all its children, and
// the error is ctx's.
func Run(ctx context.Context, spec Spec, result any) (Exit, error) {
	p, err := start(ctx, spec)
	if err != nil {
		return Exit{}, err
	}
	return p.wait(ctx, result)
}

// Start starts a server contestant and returns once it reported that it is ready,
// with its report decoded into ready. End it with Stop.
func Start(ctx context.Context, spec Spec, ready any) (*Process, error) {
	p, err := start(ctx, spec)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ready:
		if err := json.Unmarshal(p.said.Ready, ready); err != nil {
			p.kill("")
			return nil, fmt.Errorf("contestant %s: its ready line: %w", spec.Role, err)
		}
		return p, nil
	case <-p.done:
		exit, err := p.wait(ctx, nil)
		if err == nil {
			err = fmt.Errorf("contestant %s ended before it was ready %s", spec.Role, exit.Killed)
		}
		return nil, err
	}
}

// PID returns the contestant's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the contestant has ended, for whatever reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop ends a server contestant: it signals it, waits and decodes its final report.
// If that takes too long, or ctx ends, the contestant is killed.
func (p *Process) Stop(ctx context.Context, report any) (Exit, error) {
	p.stdin.Close()
	timer := time.AfterFunc(stopGrace, func() { p.kill("did not end when it was told to") })
	defer timer.Stop()
	return p.wait(ctx, report)
}

func (p *Process) wait(ctx context.Context, result any) (Exit, error) {
	<-p.done
	p.stdin.Close()
	role := p.cmd.Args[len(p.cmd.Args)-1]
	switch {
	case p.exit.Killed != "" || p.said.Result != nil && result == nil:
		return p.exit, nil
	case p.said.Result != nil:
		return p.exit, json.Unmarshal(p.said.Result, result)
	case ctx.Err() != nil:
		return p.exit, ctx.Err()
	case p.said.Error != "":
		return p.exit, fmt.Errorf("contestant %s: %s", role, p.said.Error)
	case p.killed != "":
		return p.exit, fmt.Errorf("contestant %s %s", role, p.killed)
	case p.waitErr == nil:
		return p.exit, fmt.Errorf("contestant %s ended without a result%s", role, p.stderr)
	}
	return p.exit, fmt.Errorf("contestant %s: %w%s", role, p.waitErr, p.stderr)
}

func start(ctx context.Context, spec Spec) (*Process, error) {
	exe, err := Build(ctx, spec, io.Discard)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(spec.Input)
	if err != nil {
		return nil, err
	}
	command := append(slices.Clone(spec.Under), exe, arg, spec.Role)
	p := &Process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), started: time.Now(), ready: make(chan struct{}), done: make(chan struct{})}
	p.cmd.Cancel = func() error { p.kill("was interrupted"); return nil }
	p.cmd.Env, p.cmd.Stderr, p.cmd.SysProcAttr = append(os.Environ(), spec.Env...), &p.stderr, ownGroup()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go p.run(stdout, spec.MemoryCap, spec.TimeCap, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start a contestant: %w", err)
	}
	// On Linux, out of memory, the kernel kills it before the lab.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.PID()), []byte("1000"), 0o600)
	// If it dies before it has read everything, its exit reports that.
	_, _ = p.stdin.Write(append(input, '\n'))
	return p, nil
}

// run starts the process and sees it to its end, from one thread: Linux kills such a
// child when the thread that started it ends, and a Go thread ends with the goroutine
// that locked it.
func (p *Process) run(stdout io.Reader, limit uint64, within time.Duration, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		p.read(stdout)
		p.waitErr = p.cmd.Wait()
		close(ended)
	}()
	p.watch(limit, within, ended)
	<-ended
	p.exit.PeakRSS = max(p.exit.PeakRSS, p.said.PeakRSS)
	p.killOnce.Do(func() { // not killed by this process
		switch {
		case killedBySystem(p.waitErr):
			p.exit.Killed = "killed by the system, most likely for its memory, after " + p.age()
		case outOfMemory.Match(p.stderr):
			p.exit.Killed = "ended by its runtime, which got no more memory from the system, after " + p.age()
		}
	})
	close(p.done)
}

// read takes what the contestant says until it closes its standard output.
func (p *Process) read(stdout io.Reader) {
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		before := p.said.Ready
		if json.Unmarshal(line, &p.said) == nil && before == nil && p.said.Ready != nil {
			close(p.ready)
		}
	}
}

// Overdue begins Exit.Killed of a contestant that was killed for its TimeCap.
const Overdue = "killed because it had not ended"

// watch samples the memory until ended is closed, and kills above the limit, or when the
// contestant has run for longer than within, if that is not 0.
func (p *Process) watch(limit uint64, within time.Duration, ended <-chan struct{}) {
	for tick := time.Tick(watchEvery); ; {
		select {
		case <-ended:
			return
		case <-tick:
		}
		now, high := usage.Resident(p.PID())
		if now == 0 {
			continue
		}
		p.exit.PeakRSS = max(p.exit.PeakRSS, high)
		p.exit.Memory = append(p.exit.Memory, Memory{time.Since(p.started), now})
		switch {
		case limit > 0 && high > limit:
			p.exit.Killed = fmt.Sprintf("killed above the memory cap of %d MiB after %s", limit>>20, p.age())
		case within > 0 && time.Since(p.started) > within:
			p.exit.Killed = Overdue + " after " + p.age()
		default:
			continue
		}
		p.kill("")
		return
	}
}

// kill ends the contestant and everything it started.
func (p *Process) kill(why string) {
	p.killOnce.Do(func() {
		p.killed = why
		killGroup(p.cmd.Process)
	})
}

func (p *Process) age() string { return time.Since(p.started).Round(time.Millisecond).String() }

// killedBySystem reports a SIGKILL, which the kernel sends when it is out of memory.
func killedBySystem(err error) bool {
	exit, failed := errors.AsType[*exec.ExitError](err)
	if !failed {
		return false
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	return status.Signal() == syscall.SIGKILL
}

// head keeps the beginning of standard error: a Go program that crashes prints the
// reason first, then the stack of each goroutine. Read it when the program has ended.
type head []byte

func (h *head) Write(b []byte) (int, error) {
	const size = 2 << 10
	*h = append(*h, b[:min(len(b), size-len(*h))]...)
	return len(b), nil
}

func (h head) String() string {
	if s := strings.TrimSpace(string(h)); s != "" {
		return "\n" + s
	}
	return ""
}

// outOfMemory is the error of a Go program that gets no more memory, or no more
// mappings, from the system.
var outOfMemory = regexp.MustCompile(`fatal error: (runtime: )?(out of|cannot allocate) memory`)
