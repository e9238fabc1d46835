// Package contestant runs measured code in a separate process under a memory cap.
// The state of one contestant's heap, goroutines or scheduler cannot affect the next
// one, and being killed is a result.
//
// The program starts itself, or a program that [Build] makes, with the hidden
// subcommand [Arg] and the name of a role; the input is JSON on standard input, the result is JSON on standard output.
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
	"runtime"
	"strings"
	"sync"
	"time"
)

// Arg is the hidden subcommand. Main looks for it.
const Arg = "contestant"

// WatchEvery is how often the resident memory of a contestant is sampled.
const WatchEvery = 20 * time.Millisecond

// stopGrace is how long a contestant may take to end after a stop.
const stopGrace = 20 * time.Second

// Spec says which contestant to start.
type Spec struct {
	Role      string
	Input     any      // encoded as JSON
	MemoryCap uint64   // bytes of resident memory; 0: none
	Env       []string // added to this process's environment

	// Program is the name of a folder of lab/contestants, or the import path of a
	// command; empty: this program. If this process plays the role itself, as in the
	// program's own tests, it starts itself. Otherwise see Build.
	Program string
	Variant []string // the environment of its build, such as GOEXPERIMENT=jsonv2
}

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
	stdin   io.Closer
	started time.Time
	ready   chan struct{} // closed once readyMsg is set, or never
	done    chan struct{} // closed once everything below is final

	readyMsg, result json.RawMessage
	failure          string // the role's error
	ownPeak          uint64 // the peak RSS it measured itself, at its end
	waitErr          error
	stderr           stderrHead
	exit             Exit
	killOnce         sync.Once
	killed           string // why the parent killed it, other than for its memory
}

// message is one line of a contestant's standard output.
type message struct {
	Ready   json.RawMessage `json:"ready,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	PeakRSS uint64          `json:"peak_rss,omitempty"`
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
		if err := json.Unmarshal(p.readyMsg, ready); err != nil {
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

// Resident is this process's resident memory in bytes, and false where the system does
// not tell.
func Resident() (uint64, bool) {
	now, _, ok := residentMemory(os.Getpid())
	return now, ok
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
	case p.exit.Killed != "":
		return p.exit, nil
	case p.result != nil:
		if result == nil {
			return p.exit, nil
		}
		return p.exit, json.Unmarshal(p.result, result)
	case ctx.Err() != nil:
		return p.exit, ctx.Err()
	case p.failure != "":
		return p.exit, fmt.Errorf("contestant %s: %s", role, p.failure)
	case p.killed != "":
		return p.exit, fmt.Errorf("contestant %s %s", role, p.killed)
	case p.waitErr == nil:
		return p.exit, fmt.Errorf("contestant %s ended without a result%s", role, p.stderr.text())
	}
	return p.exit, fmt.Errorf("contestant %s: %w%s", role, p.waitErr, p.stderr.text())
}

func start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	exe, err := Build(ctx, spec, io.Discard)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(spec.Input)
	if err != nil {
		return nil, err
	}
	p := &Process{started: time.Now(), ready: make(chan struct{}), done: make(chan struct{})}
	p.cmd = exec.Command(exe, Arg, spec.Role)
	p.cmd.Env = append(os.Environ(), spec.Env...)
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = ownGroup()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.startOnOwnThread(); err != nil {
		return nil, fmt.Errorf("cannot start a contestant: %w", err)
	}
	offerToOOMKiller(p.cmd.Process.Pid)
	// If a contestant dies before it has read everything, its exit reports that.
	_, _ = stdin.Write(append(input, '\n'))

	var watching sync.WaitGroup
	ended := make(chan struct{})
	watching.Go(func() { p.watch(spec.MemoryCap, ended) })
	forget := context.AfterFunc(ctx, func() { p.kill("was interrupted") })
	go func() {
		p.read(stdout)
		p.waitErr = p.cmd.Wait()
		forget()
		close(ended)
		watching.Wait()
		p.exit.PeakRSS = max(p.exit.PeakRSS, p.ownPeak)
		p.killOnce.Do(func() { // not killed by this process
			switch {
			case killedBySystem(p.waitErr):
				p.exit.Killed = "killed by the system, most likely for its memory, after " + p.age()
			case p.stderr.outOfMemory():
				p.exit.Killed = "ended by its runtime, which got no more memory from the system, after " + p.age()
			}
		})
		close(p.done)
	}()
	return p, nil
}

// startOnOwnThread starts the process from a thread that lives as long as the
// process: Linux kills such a child when the thread that started it ends, and a Go
// thread ends with the goroutine that locked it.
func (p *Process) startOnOwnThread() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			<-p.done
		}
	}()
	return <-started
}

// read takes the contestant's messages until it closes its standard output.
func (p *Process) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch {
		case m.Ready != nil && p.readyMsg == nil:
			p.readyMsg = m.Ready
			close(p.ready)
		case m.Result != nil:
			p.result = m.Result
		case m.Error != "":
			p.failure = m.Error
		}
		p.ownPeak = max(p.ownPeak, m.PeakRSS)
	}
}

// watch samples the memory until ended is closed, and kills above the limit.
func (p *Process) watch(limit uint64, ended <-chan struct{}) {
	tick := time.NewTicker(WatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		now, high, ok := residentMemory(p.cmd.Process.Pid)
		if !ok {
			continue
		}
		p.exit.PeakRSS = max(p.exit.PeakRSS, high)
		p.exit.Memory = append(p.exit.Memory, Memory{time.Since(p.started), now})
		if limit > 0 && high > limit {
			p.exit.Killed = fmt.Sprintf("killed above the memory cap of %d MiB after %s", limit>>20, p.age())
			p.kill("")
			return
		}
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

// stderrHead keeps the beginning of standard error: a Go program that crashes prints
// the reason first, then the stack of each goroutine.
type stderrHead struct {
	mu  sync.Mutex
	buf []byte
}

const stderrSize = 2 << 10

func (c *stderrHead) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = append(c.buf, b[:min(len(b), stderrSize-len(c.buf))]...)
	return len(b), nil
}

func (c *stderrHead) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := strings.TrimSpace(string(c.buf)); s != "" {
		return "\n" + s
	}
	return ""
}

// outOfMemory recognises the error of a Go program that gets no more memory, or no
// more mappings, from the system.
func (c *stderrHead) outOfMemory() bool {
	s := c.text()
	return strings.Contains(s, "fatal error: runtime: out of memory") || strings.Contains(s, "fatal error: runtime: cannot allocate memory") ||
		strings.Contains(s, "fatal error: out of memory")
}

// ErrUnknownRole is returned by Main's role look-up; it means that parent and
// child are different programs.
var ErrUnknownRole = errors.New("unknown contestant")
