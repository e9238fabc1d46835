package experiment

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/results"
)

// ThisMachine describes this machine, as far as the system reports it.
func ThisMachine() results.Machine {
	memory, _, _ := strings.Cut(firstField("/proc/meminfo", "MemTotal"), " ")
	kib, _ := strconv.Atoi(memory)
	return results.Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), CPU: firstField("/proc/cpuinfo", "model name"),
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), MemoryMiB: kib >> 10,
	}
}

// firstField returns the value of the first "name: value" line of a file, or "".
func firstField(path, name string) string {
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Revision names the lab's sources: the commit it was built from, or else the program
// itself by its content.
var Revision = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if commit := settings["vcs.revision"]; commit != "" && settings["vcs.modified"] != "true" {
			return commit[:min(12, len(commit))]
		}
	}
	path, _ := os.Executable()
	program, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(program)
	return fmt.Sprintf("program %x", sum[:6])
})

// tooMuch is the share of the machine's processors that other processes may use during
// a measurement.
const tooMuch = 0.10

// watchNeighbours begins to watch how much other processes compute: what all processes
// used, less what this one, its contestants and a server of theirs did, if there is one.
// It returns their share of all processors since then, 0 to 1. Only Linux tells; elsewhere
// nothing disturbs.
func watchNeighbours(server int) (share func() float64) {
	began := time.Now()
	before, ok := othersTicks(server)
	return func() float64 {
		elapsed := time.Since(began).Seconds()
		now, still := othersTicks(server)
		if !ok || !still || elapsed < 0.5 { // a tick is 10 ms
			return 0
		}
		const ticksPerSecond = 100
		return min(max(0, float64(now-before)/ticksPerSecond/elapsed/float64(runtime.NumCPU())), 1)
	}
}

// othersTicks is the processor time of other processes so far, in clock ticks.
func othersTicks(server int) (int64, bool) {
	// user nice system idle iowait irq softirq steal, the last by the hypervisor's other
	// guests. Interrupts are left out: our own network traffic makes them.
	all, ok1 := ticks("/proc/stat", "cpu ", 0, 1, 2, 7)
	ours, ok2 := treeTicks("self")
	pids := children("self")
	if server > 0 {
		pid := strconv.Itoa(server)
		pids = append(append(pids, pid), children(pid)...)
	}
	for _, pid := range pids {
		of, _ := treeTicks(pid) // one that has ended meanwhile is among its parent's the next time
		ours += of
	}
	return all - ours, ok1 && ok2
}

// treeTicks is the processor time of a process and of its children that have ended.
func treeTicks(pid string) (int64, bool) {
	// state ppid … utime stime cutime cstime. The name before them may contain anything but
	// the bracket.
	return ticks("/proc/"+pid+"/stat", ") ", 11, 12, 13, 14)
}

// children are the processes that a process has started and that run, each listed by the
// thread that started it.
func children(of string) (pids []string) {
	threads, _ := filepath.Glob("/proc/" + of + "/task/*/children")
	for _, path := range threads {
		list, _ := os.ReadFile(path)
		pids = append(pids, strings.Fields(string(list))...)
	}
	return pids
}

// ticks sums some of the fields that follow a word in a file.
func ticks(path, after string, fields ...int) (sum int64, ok bool) {
	data, err := os.ReadFile(path)
	_, rest, found := strings.Cut(string(data), after)
	all := strings.Fields(rest)
	if err != nil || !found || len(all) < 15 {
		return 0, false
	}
	for _, i := range fields {
		n, _ := strconv.ParseInt(all[i], 10, 64)
		sum += n
	}
	return sum, true
}
