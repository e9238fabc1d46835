package contestant

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// CapEnforced reports whether MemoryCap has an effect on this system.
const CapEnforced = true

// ownGroup puts the contestant into a process group of its own, so that a terminal's
// Ctrl-C reaches only the lab, and makes the kernel kill it when this process dies.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// killedBySystem reports a SIGKILL, which the kernel sends when it is out of memory.
func killedBySystem(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// offerToOOMKiller makes the kernel kill a contestant before the lab.
func offerToOOMKiller(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0o600)
}

// residentMemory returns the resident memory of a process and its peak, in
// bytes. The peak is the kernel's own, so it includes what happens between two
// samples. (getrusage cannot be used: a child starts with its parent's peak.)
func residentMemory(pid int) (now, peak uint64, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, false
	}
	now, nowOK := statusKB(data, "VmRSS:")
	peak, peakOK := statusKB(data, "VmHWM:")
	return now << 10, max(now, peak) << 10, nowOK && peakOK
}

func statusKB(status []byte, name string) (uint64, bool) {
	_, rest, found := bytes.Cut(status, []byte("\n"+name))
	if !found {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(fields[0]), 10, 64)
	return n, err == nil
}
