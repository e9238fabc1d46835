package pools

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config is what a user may set.
type Config struct {
	Parts       []string
	Contestants []string
	Works       []time.Duration // of submitted jobs; 0: none
	Producers   []int           // 0: GOMAXPROCS
	Workers     []int
	Buffer      int           // places in the queue of those that have one
	Rounds      int           // in each repeat
	Time        time.Duration // of each measurement

	BurstJobs, BurstWorkers int
	BurstWork               time.Duration

	Sizes           []int         // fixed ones that sizing compares with, in multiples of GOMAXPROCS
	Settle, Measure time.Duration // of sizing: given to the pool without a number, and measured for

	MemoryCap uint64 // bytes for each process; 0: none
}

// Defaults is the experiment at full size.
func Defaults() Config {
	return Config{
		Parts: Parts(), Contestants: Names(),
		Works: []time.Duration{0, time.Microsecond, 20 * time.Microsecond}, Producers: []int{1, 0, 64, 1000}, Workers: []int{2, 100, 1000},
		Buffer: 1024, Rounds: 5, Time: 6 * time.Millisecond,
		BurstJobs: 1_000_000, BurstWorkers: 5000, BurstWork: 10 * time.Millisecond,
		Sizes: []int{1, 2, 4, 8, 16, 32, 64}, Settle: 5 * time.Second, Measure: time.Second, MemoryCap: 2 << 30,
	}
}

// Quick is a short run: fewer producers and workers, short rounds, a small burst, and
// no sizing, which cannot be shortened.
func Quick() Config {
	c := Defaults()
	c.Parts = slices.DeleteFunc(c.Parts, is(Sizing))
	c.Producers, c.Workers = []int{1, 1000}, []int{2, 1000}
	c.Rounds, c.Time = 3, 3*time.Millisecond
	c.BurstJobs = 100_000
	return c
}

func (c Config) check() error {
	for _, name := range c.Contestants {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("unknown contestant %q: want one of %s, or leave it out for all", name, strings.Join(Names(), ", "))
		}
	}
	for _, part := range c.Parts {
		if !slices.Contains(Parts(), part) {
			return fmt.Errorf("unknown part %q: want one of %s, or leave it out for all", part, strings.Join(Parts(), ", "))
		}
	}
	for _, n := range c.Workers {
		if n < 1 || n > 100_000 {
			return fmt.Errorf("workers is %d: want 1 to 100000", n)
		}
	}
	for _, n := range c.Producers {
		if n < 0 || n > 100_000 {
			return fmt.Errorf("producers is %d: want 1 to 100000, or 0 for GOMAXPROCS", n)
		}
	}
	for _, n := range c.Sizes {
		if n < 1 || n > 1000 {
			return fmt.Errorf("size is %d: want 1 to 1000 times GOMAXPROCS", n)
		}
	}
	for _, d := range c.Works {
		if d < 0 || d > time.Millisecond {
			return fmt.Errorf("work is %v: want 0s to 1ms", d)
		}
	}
	switch {
	case len(c.Parts) == 0 || len(c.Contestants) == 0 || len(c.Works) == 0 || len(c.Producers) == 0 || len(c.Workers) == 0:
		return fmt.Errorf("nothing to do: leave a flag out for all of its values")
	case c.Buffer < 1:
		return fmt.Errorf("buffer is %d: want at least 1", c.Buffer)
	case c.Rounds < 1 || c.Time <= 0:
		return fmt.Errorf("rounds %d, time %v: want at least 1 and more than 0s", c.Rounds, c.Time)
	case c.BurstJobs < 1 || c.BurstWorkers < 1 || c.BurstWork <= 0:
		return fmt.Errorf("a burst of %d jobs of %v on %d workers: want at least one of each", c.BurstJobs, c.BurstWork, c.BurstWorkers)
	case c.Settle < 0 || c.Measure < step:
		return fmt.Errorf("settle %v, measure %v: want at least 0s and %v", c.Settle, c.Measure, step)
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
	own(len(c.Parts) < len(d.Parts), "%s only", strings.Join(c.Parts, ", "))
	own(len(c.Contestants) < len(d.Contestants), "%s only", strings.Join(c.Contestants, ", "))
	own(!slices.Equal(c.Works, d.Works), "work of %v instead of %v", c.Works, d.Works)
	own(!slices.Equal(c.Producers, d.Producers), "%v producers instead of %v", c.Producers, d.Producers)
	own(!slices.Equal(c.Workers, d.Workers), "%v workers instead of %v", c.Workers, d.Workers)
	own(c.Buffer != d.Buffer, "queues of %d places instead of %d", c.Buffer, d.Buffer)
	own(c.Rounds != d.Rounds || c.Time != d.Time, "%d of %v instead of %d of %v", c.Rounds, c.Time, d.Rounds, d.Time)
	own(c.BurstJobs != d.BurstJobs || c.BurstWork != d.BurstWork || c.BurstWorkers != d.BurstWorkers, "a burst of %d x %v on %d workers instead of %d x %v on %d",
		c.BurstJobs, c.BurstWork, c.BurstWorkers, d.BurstJobs, d.BurstWork, d.BurstWorkers)
	own(!slices.Equal(c.Sizes, d.Sizes), "fixed sizes of %v instead of %v times GOMAXPROCS", c.Sizes, d.Sizes)
	own(c.Settle != d.Settle || c.Measure != d.Measure, "sizing settles for %v and is measured for %v instead of %v and %v", c.Settle, c.Measure, d.Settle, d.Measure)
	return strings.Join(parts, "; ")
}
