//go:build unix

package patterns

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/spillway-go/spillway/lab/experiment"
)

// spareFiles is what a process needs besides its connections.
const spareFiles = 100

// enoughFiles checks that as many connections may be open as clients send at the same
// time. Go raises the soft limit to the hard one before main.
func enoughFiles(c Config) error {
	most, at := 0, map[string]int{}
	for _, k := range c.keys() {
		if k.Setup == Real {
			name := cmp.Or(beside(k), k.String())
			at[name] += c.job(k, experiment.Trial{}).Clients
			most = max(most, at[name]+spareFiles)
		}
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil && uint64(limit.Max) < uint64(most) {
		return fmt.Errorf("the clients need %d open files and this session may have %d: raise it with ulimit -n %d, or take fewer --clients", most, limit.Max, most)
	}
	return nil
}
