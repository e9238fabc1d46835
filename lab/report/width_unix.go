//go:build linux || darwin

package report

import (
	"os"
	"syscall"
	"unsafe"
)

// terminalWidth is the terminal's width; 80 if unknown.
func terminalWidth(f *os.File) int {
	var size struct{ rows, cols, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 || size.cols == 0 {
		return 80
	}
	return int(size.cols)
}
