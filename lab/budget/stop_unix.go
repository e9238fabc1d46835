//go:build unix

package budget

import "golang.org/x/sys/unix"

func stop(pid int) error   { return unix.Kill(pid, unix.SIGSTOP) }
func resume(pid int) error { return unix.Kill(pid, unix.SIGCONT) }
