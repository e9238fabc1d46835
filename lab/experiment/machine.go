package experiment

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
)

// ThisMachine describes this machine, as far as the system reports it.
func ThisMachine() results.Machine {
	m := results.Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
	m.CPU = firstField("/proc/cpuinfo", "model name")
	if kb, _, ok := strings.Cut(firstField("/proc/meminfo", "MemTotal"), " "); ok {
		if n, err := strconv.Atoi(kb); err == nil {
			m.MemoryMiB = n >> 10
		}
	}
	return m
}

// firstField returns the value of the first "name: value" line of a file, or "".
func firstField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
