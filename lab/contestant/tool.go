package contestant

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spillway-go/spillway/load/usage"
)

// Tool is a program that is none of the lab's and knows nothing of roles, such as a load
// generator that others made.
type Tool struct {
	Path  string
	Args  []string
	Env   []string // nil: this process's environment
	Stdin string
}

// Used is what a program used until it ended.
type Used struct {
	CPU     time.Duration // user and system; 0 if the system does not report it
	PeakRSS uint64        // bytes; likewise
}

// Run runs the tool until it ends. What it prints is thrown away, except for the reason
// of a failure. When ctx ends the tool is killed with all its children.
func (t Tool) Run(ctx context.Context) (used Used, err error) {
	runtime.LockOSThread() // see Process.run
	defer runtime.UnlockOSThread()
	var said head
	cmd := exec.CommandContext(ctx, t.Path, t.Args...)
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = t.Env, &said, ownGroup()
	cmd.Cancel = func() error { killGroup(cmd.Process); return nil }
	if t.Stdin != "" {
		cmd.Stdin = strings.NewReader(t.Stdin)
	}
	if err := cmd.Start(); err != nil {
		return used, err
	}
	ended, peak := make(chan struct{}), make(chan uint64)
	go func() { peak <- peakUntil(ended, cmd.Process.Pid) }()
	err = cmd.Wait()
	close(ended)
	used = Used{CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), PeakRSS: <-peak}
	switch {
	case ctx.Err() != nil:
		return used, ctx.Err()
	case err != nil:
		return used, fmt.Errorf("%s: %w%s", filepath.Base(t.Path), err, said)
	}
	return used, nil
}

// peakUntil is the peak memory of a process, which the system forgets when it ends.
func peakUntil(ended <-chan struct{}, pid int) (peak uint64) {
	for tick := time.Tick(watchEvery); ; {
		_, high := usage.Resident(pid)
		peak = max(peak, high)
		select {
		case <-ended:
			return peak
		case <-tick:
		}
	}
}
