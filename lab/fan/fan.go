// Package fan is experiment F: a lookup in a database and caches, one after the other
// or at once. It runs a published parallel version as printed, the same corrected,
// usual code with errgroup and conc, and package fanout; and it measures the
// break-even of this machine.
//
// All contestants of a table take turns in one process. If sources wait, a virtual
// clock makes times exact; if they compute, time is real.
package fan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
)

// Experiment is experiment F.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.F.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.F.Title }

const (
	roleBout   = "fan-bout"
	roleNest   = "fan-nest"
	roleChange = "fan-change"
	roleHedge  = "fan-hedge"
	roleDemo   = "fan-demo-" // and the demonstration's id
)

// Roles are the roles of its contestants.
func Roles() map[string]contestant.Role {
	roles := map[string]contestant.Role{
		roleBout:   contestant.Func(play),
		roleNest:   contestant.Func(playNested),
		roleChange: contestant.Func(playChange),
		roleHedge:  contestant.Func(playHedging),
	}
	for id, play := range staged {
		roles[roleDemo+id] = contestant.Func(play)
	}
	return roles
}

// Config is what a user may set.
type Config struct {
	Grid        bool // from 0.5 µs to 50 ms, and two kinds of waiting; otherwise only what the break-even needs
	Contestants []string
	Sources     []int           // a database and caches
	Branches    []time.Duration // of the grid; nil: its own
	Rounds      int             // in each repeat
	Time        time.Duration   // of each measurement
	Calls       int             // of the hedging
	MemoryCap   uint64          // bytes for each process; 0: none
}

// Defaults is the experiment at full size, without the grid.
func Defaults() Config {
	return Config{Contestants: Names(), Sources: []int{2, 8, 64}, Rounds: 5, Time: 5 * time.Millisecond, Calls: 20_000, MemoryCap: 2 << 30}
}

// Quick is a short run.
func Quick() Config {
	c := Defaults()
	c.Sources = []int{2, 8}
	c.Branches = micro(1, 10, 50, 200, 1000)
	c.Rounds, c.Time, c.Calls = 3, 2*time.Millisecond, 5_000
	return c
}

func micro(us ...float64) (out []time.Duration) {
	for _, x := range us {
		out = append(out, time.Duration(x*float64(time.Microsecond)))
	}
	return out
}

// branches are the durations of the grid.
func (c Config) branches() []time.Duration {
	switch {
	case c.Branches != nil:
		return c.Branches
	case c.Grid:
		return micro(.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000, 50_000)
	}
	return micro(1, 5, 20, 50, 100, 200, 500, 1000)
}

// kinds are those of the grid.
func (c Config) kinds() []string {
	if c.Grid {
		return []string{Computing, OneProc, Yielding, Virtual}
	}
	return []string{Computing, OneProc, Yielding}
}

func (c Config) check() error {
	for _, name := range c.Contestants {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("unknown contestant %q: want one of %s, or leave it out for all", name, strings.Join(Names(), ", "))
		}
	}
	for _, n := range c.Sources {
		if n < 2 || n > 256 {
			return fmt.Errorf("n is %d: want 2 to 256 sources", n)
		}
	}
	for _, d := range c.Branches {
		if d < 100*time.Nanosecond || d > time.Second {
			return fmt.Errorf("branch is %v: want 100ns to 1s", d)
		}
	}
	switch {
	case len(c.Contestants) == 0 || len(c.Sources) == 0:
		return fmt.Errorf("nothing to do: leave a flag out for all of its values")
	case c.Rounds < 1 || c.Time <= 0:
		return fmt.Errorf("rounds %d, time %v: want at least 1 and more than 0s", c.Rounds, c.Time)
	case c.Calls < 500:
		return fmt.Errorf("calls is %d: want at least 500, for a p99", c.Calls)
	}
	return nil
}

// scaled says how this differs from the experiment at full size.
func (c Config) scaled() string {
	d := Defaults()
	var parts []string
	own := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	own(len(c.Contestants) < len(d.Contestants), "%s only", strings.Join(c.Contestants, ", "))
	own(!slices.Equal(c.Sources, d.Sources), "n of %v instead of %v", c.Sources, d.Sources)
	own(c.Branches != nil, "branches of %v", c.Branches)
	own(c.Rounds != d.Rounds || c.Time != d.Time, "%d rounds of %v instead of %d of %v", c.Rounds, c.Time, d.Rounds, d.Time)
	own(c.Calls != d.Calls, "%d calls instead of %d while hedging", c.Calls, d.Calls)
	return strings.Join(parts, "; ")
}
