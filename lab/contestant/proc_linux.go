package contestant

import (
	"os"
	"syscall"
)

// ownGroup puts the contestant into a process group of its own, so that a terminal's
// Ctrl-C reaches only the lab, and makes the kernel kill it when this process dies.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
