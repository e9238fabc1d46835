// Package reuse is the experiment that measures the value of reusing objects:
// allocated, from sync.Pool, from a channel, and from objectpool; in a steady cycle and
// in bursts; what is held afterwards, and the memory after one outlier.
package reuse

import (
	"runtime"
	"time"

	"github.com/spillway-go/spillway/lab/bouts"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleCycle:   turns.Role(nil, cycling.player),
	roleBursts:  contestant.Func(Bursts),
	roleOutlier: contestant.Func(outlier),
})

const (
	roleCycle   = "reuse-cycle"
	roleBursts  = "reuse-bursts"
	RoleIdle    = "reuse-idle" // Burst, figures: of the program virtual
	roleOutlier = "reuse-outlier"
)

const help = `Objects are made fresh, taken from sync.Pool, from a channel of 1,000, from objectpool.Pool and from objectpool.Buffers. In a steady cycle (get, write 1 KB, clear, put) all take turns in one process, at 1, GOMAXPROCS and 1,000 goroutines. In bursts, with two collections in every gap, all users hold 64 KiB each. Then it is measured what a pool holds after a minute without use, which passes in virtual time, and what one object of 64 MiB leaves in resident memory.`

// Config is what a user may set.
type Config struct {
	Contestant []string      `placeholder:"NAME" help:"Only these: fresh, sync.Pool, channel, spillway, spillway-buffers. Claims that need another one stay open."`
	Size       []int         `group:"Size" default:"1024,65536,500000" least:"1" most:"1048576" help:"Sizes of the objects of the steady cycles, in bytes. Claims are about 1024 and 500000."`
	Rounds     int           `group:"Size" default:"15" full:"31" quick:"5" least:"3" help:"How often every contestant has its turn in a steady cycle, in each repeat."`
	Time       time.Duration `group:"Size" default:"10ms" quick:"3ms" whole:"6ms" above:"0s" help:"How long a turn is."`
	Users      int           `group:"Size" default:"1000" least:"1" help:"Goroutines of a burst, each holding an object of 64 KiB. Beside the outlier it is a fifth of them."`
	Bursts     int           `group:"Size" default:"6" full:"10" quick:"4" least:"2" help:"How many bursts there are. The first one makes the objects and does not count."`
	On         time.Duration `group:"Size" default:"100ms" above:"0s" help:"How long a burst is."`
	Off        time.Duration `group:"Size" default:"300ms" least:"0s" help:"How long the gap after a burst is."`
	MemoryCap  int           `default:"4096" placeholder:"MIB" least:"0" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
}

func plan(c Config) (p experiment.Plan, err error) {
	if c.Contestant, err = experiment.Chosen(c.Contestant, names); err != nil {
		return p, err
	}
	for i, crowd := range crowds {
		t := bouts.Table[cycling]{
			Config: turns.Config{Rounds: c.Rounds, Time: c.Time}, Label: "steady cycles by " + crowd + ", in turns", Spec: c.spec(roleCycle, nil),
			Figures: experiment.Figures{"ns": turns.Nanos, "mallocs": turns.Mallocs}, Versus: "ns",
		}
		for _, size := range c.Size {
			for _, name := range c.Contestant {
				t.Add(cycleKey(name, size, crowd), ours(name) && size == small, cycling{name, size, []int{1, runtime.GOMAXPROCS(0), 1000}[i]})
			}
		}
		t.To(&p)
	}
	for _, name := range c.Contestant {
		job := Burst{Contestant: name, Users: c.Users, Bursts: c.Bursts, On: c.On, Off: c.Off}
		p.Alone(burstKey.By(name), time.Duration(c.Bursts)*(c.On+c.Off), c.spec(roleBursts, job))
		if name == spillway {
			job.Bursts, job.Idle = 2, time.Minute
			p.Programs = append(p.Programs, c.spec(RoleIdle, nil))
			p.Alone(idleKey, time.Second, c.spec(RoleIdle, job))
		}
		for _, with := range []bool{true, false} {
			for _, k := range outlierKey(name, with).AndTwin(ours(name) && !with) {
				p.Alone(k, time.Second, c.spec(roleOutlier, outlierJob{name, with, max(c.Users/5, 1)}))
			}
		}
	}
	return p, nil
}

// spec starts a role: this program's own, or the one of the program virtual.
func (c Config) spec(role string, job any) contestant.Spec {
	return contestant.Spec{Program: "virtual", Role: role, Input: job, MemoryCap: uint64(c.MemoryCap) << 20}
}

// crowds are who uses a pool in a steady cycle.
var crowds = []string{"1 goroutine", "GOMAXPROCS goroutines", "1,000 goroutines"}
