//go:build linux || darwin

package report

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalWidth is the terminal's width; 80 if unknown.
func terminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}
