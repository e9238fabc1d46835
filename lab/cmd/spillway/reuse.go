package main

import (
	"time"

	"github.com/spillway-go/spillway/lab/reuse"
)

type labReuseCmd struct {
	Quick bool `env:"SPILLWAY_LAB_REUSE_QUICK" group:"Size" help:"Short rounds and no idle minute, one or two minutes."`

	Size  []int          `env:"SPILLWAY_LAB_REUSE_SIZE" group:"Size" placeholder:"BYTES" help:"Only these sizes in the steady cycle; 1024, 65536 and 500000 unless given."`
	Users int            `env:"SPILLWAY_LAB_REUSE_USERS" group:"Size" default:"1000" help:"Goroutines of a burst, each holding an object of 64 KiB."`
	Idle  *time.Duration `env:"SPILLWAY_LAB_REUSE_IDLE" group:"Size" placeholder:"D" help:"How long to wait before looking at what is still held; 1m unless given, 0s leaves it out."`

	labRun `embed:"" set:"id=reuse" set:"memory=4096"`
}

// Help teaches.
func (labReuseCmd) Help() string {
	return `Objects made fresh, taken from sync.Pool, from a channel of 1,000, from objectpool.Pool and from objectpool.Buffers. In a steady cycle (get, write 1 KB, clear, put) all take turns in one process, at 1, GOMAXPROCS and 1,000 goroutines. In bursts (100 ms on, 300 ms off, two collections in every gap) 1,000 users hold 64 KiB each. Then: what is held after a minute without use, and what one object of 64 MiB leaves in resident memory.

Examples:
  spillway lab reuse             some six minutes
  spillway lab reuse --quick     a short run
  spillway lab judge DIR         verdicts again, from the raw runs

` + labEnds
}

func (c *labReuseCmd) Run(env *environment) error {
	config := reuse.Defaults()
	if c.Quick {
		config = reuse.Quick()
	}
	if c.Size != nil {
		config.Sizes = c.Size
	}
	if c.Idle != nil {
		config.Idle = *c.Idle
	}
	config.Users, config.MemoryCap = c.Users, c.bytes()
	return c.run(env, reuse.Experiment{Config: config})
}
