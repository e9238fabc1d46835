package report

import "os"

// For returns the options that suit f: colour only on a terminal whose user
// has not set NO_COLOR, and the terminal's width.
func For(f *os.File) Options {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return Options{Width: 100}
	}
	colour := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return Options{Color: colour, Width: terminalWidth(f)}
}
