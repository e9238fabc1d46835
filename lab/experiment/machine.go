package experiment

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

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

// Revision names the lab's sources: the commit it was built from, or else the program
// itself by its content.
var Revision = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		var commit, dirty string
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "+"
			}
		}
		if commit != "" && dirty == "" {
			return commit
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	f, err := os.Open(exe)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "unknown"
	}
	return "program " + hex.EncodeToString(sum.Sum(nil))[:12]
})

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
