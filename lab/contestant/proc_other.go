//go:build !linux

package contestant

import (
	"os"
	"syscall"
)

// CapEnforced reports whether MemoryCap has an effect on this system.
const CapEnforced = false

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) { _ = p.Kill() }

func killedBySystem(error) bool { return false }

func offerToOOMKiller(int) {}

func residentMemory(int) (now, peak uint64, ok bool) { return 0, 0, false }
