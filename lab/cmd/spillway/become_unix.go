//go:build unix

package main

import (
	"os"
	"syscall"
)

// become replaces this process by a program, which then has its streams, its signals
// and its exit code.
func become(path string, args []string) error {
	return syscall.Exec(path, append([]string{path}, args...), os.Environ())
}
