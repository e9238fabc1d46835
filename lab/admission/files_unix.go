//go:build unix

package admission

import "syscall"

// idleByFiles is how many idle connections are made: a third of the files that a
// process may open. Go raises the soft limit to the hard one before main.
func idleByFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1000
	}
	return int(min(uint64(limit.Cur)/3, mostIdle))
}
