package experiment

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tooMuch is the share of the machine's processors that other processes may use during
// a measurement.
const tooMuch = 0.10

// neighbours watches how much other processes compute: what all processes used, less
// what this one and its descendants did. Only Linux tells; elsewhere nothing disturbs.
type neighbours struct {
	began     time.Time
	all, ours uint64 // clock ticks
	ok        bool
}

func watchNeighbours() neighbours {
	ours, ok1 := familyTicks(os.Getpid())
	all, ok2 := busyTicks("/proc/stat")
	return neighbours{time.Now(), all, ours, ok1 && ok2}
}

// share is what the others used of all processors since then, 0 to 1.
func (n neighbours) share() float64 {
	now := watchNeighbours()
	elapsed := now.began.Sub(n.began).Seconds()
	if !n.ok || !now.ok || elapsed < 0.5 { // a tick is 10 ms
		return 0
	}
	const ticksPerSecond = 100
	others := float64(now.all-n.all) - float64(int64(now.ours-n.ours))
	return min(max(0, others/ticksPerSecond/elapsed/float64(runtime.NumCPU())), 1)
}

// busyTicks sums what ran in user and kernel mode and what the hypervisor gave to
// others. Interrupts are left out: our own network traffic makes them.
func busyTicks(path string) (uint64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	line, _, _ := strings.Cut(string(data), "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	if len(f) < 9 {
		return 0, false
	}
	return number(f[1]) + number(f[2]) + number(f[3]) + number(f[8]), true
}

// familyTicks sums the processor time of a process and its descendants, those that have
// ended included.
func familyTicks(root int) (uint64, bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	ticks, parent := map[int]uint64{}, map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := bytes.Cut(data, []byte(") ")) // the name may contain anything but this
		f := strings.Fields(string(rest))           // state ppid … utime stime cutime cstime from the 12th on
		if len(f) < 15 {
			continue
		}
		parent[pid] = int(number(f[1]))
		ticks[pid] = number(f[11]) + number(f[12]) + number(f[13]) + number(f[14])
	}
	var sum uint64
	for pid := range ticks {
		for up, depth := pid, 0; up != 0 && depth < 64; up, depth = parent[up], depth+1 {
			if up == root {
				sum += ticks[pid]
				break
			}
		}
	}
	return sum, ticks[root] > 0 || len(ticks) > 0
}

func number(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}
