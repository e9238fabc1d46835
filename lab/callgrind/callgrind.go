// Package callgrind counts the instructions of measured code. What else the machine does
// does not change them, so that they tell differences of tens of nanoseconds, which times
// do not. Valgrind has to be installed.
//
// The counting program is simulated on one processor, with the collector off: neither
// contention nor collections are in a count, nor what the kernel does.
package callgrind

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

// Missing says what to do where nothing was counted.
const Missing = "No instructions were counted: install Valgrind, https://valgrind.org, and run this again."

// Installed reports whether instructions can be counted here. A program with the race
// detector does not run under Valgrind.
func Installed() bool {
	_, err := exec.LookPath("valgrind")
	return err == nil && !usage.Race
}

// Play does the blocks in turns, so many rounds after one that warms them, in a new order in each
// round: a block that always follows the same other one would always find the same free memory.
// A role that is counted calls Play once.
func Play(rounds int, seed uint64, blocks []func()) {
	// What the blocks allocate fits into this, so that the heap grows in none of them.
	room := make([]byte, 512<<20)
	runtime.KeepAlive(room)
	runtime.GC()
	for round := range rounds + 1 {
		for _, i := range order(seed, round, len(blocks)) {
			mark()
			blocks[i]()
		}
	}
	mark()
}

// Role is a process that does Least units of the work of each player in each round, to be counted.
func Role[P any](player func(P) (turns.Player, error)) contestant.Role {
	return contestant.Func(func(_ context.Context, g turns.Game[P]) (any, error) {
		players, err := g.Made(player)
		if err != nil {
			return nil, err
		}
		var blocks []func()
		for _, p := range players {
			if err := p.Begin(g.Least); err != nil {
				return nil, fmt.Errorf("%s: %w", p.Name, err)
			}
			blocks = append(blocks, func() { p.Block(g.Least) })
		}
		Play(g.Rounds, g.Seed, blocks)
		for _, p := range players {
			if err := p.End(); err != nil {
				return nil, fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		return nil, nil
	})
}

// order is the order of the blocks in a round.
func order(seed uint64, round, blocks int) []int {
	return rand.New(rand.NewPCG(seed, uint64(round))).Perm(blocks)
}

// mark is where callgrind writes down what it has counted since the last mark.
//
//go:noinline
func mark() { marks.Add(1) }

var marks atomic.Int64

// Count runs a role that plays so many blocks, in so many rounds and by that seed, and returns the
// instructions of each in every round.
func Count(ctx context.Context, spec contestant.Spec, blocks, rounds int, seed uint64) ([][]float64, error) {
	dir, err := os.MkdirTemp("", "spillway-callgrind-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "out")
	// The scheduler's monitor is a thread that runs by the clock. Its instructions are left out.
	spec.Under = []string{"valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=" + file, "--dump-before=*callgrind.mark",
		"--toggle-collect=runtime.sysmon", "--collect-atstart=yes"} // the first of these flags sets the second to no
	// Callgrind ends at the signals by which the runtime preempts. Valgrind claims RDTSCP where the
	// machine does not have that instruction, too, and then ends when the runtime waits for a lock.
	spec.Env = append(spec.Env, "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off")
	exit, err := contestant.Run(ctx, spec, nil)
	switch {
	case err != nil:
		return nil, err
	case exit.Killed != "":
		return nil, fmt.Errorf("the counting process was %s", exit.Killed)
	}
	out := make([][]float64, blocks)
	number := 2 + blocks // of the file: before it are what came before Play, and the round that warms
	for round := range rounds {
		for _, i := range order(seed, round+1, blocks) {
			n, err := total(fmt.Sprintf("%s.%d", file, number))
			if err != nil {
				return nil, err
			}
			out[i], number = append(out[i], n), number+1
		}
	}
	return out, nil
}

// total is the sum of the instructions in a file of callgrind's.
func total(file string) (float64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, fmt.Errorf("callgrind has not counted a block, for which the program needs the names of its functions (leave -s out of GOFLAGS): %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "totals: "); ok {
			return strconv.ParseFloat(n, 64)
		}
	}
	return 0, fmt.Errorf("callgrind has written no total into %s", filepath.Base(file))
}
