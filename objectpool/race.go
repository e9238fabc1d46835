//go:build race

package objectpool

import (
	"runtime"
	"sync/atomic"
)

const raceEnabled = true

// counter counts without ordering the goroutines that count: an accidental order hides races.
type counter struct{ n atomic.Uint64 }

func (c *counter) add() {
	runtime.RaceDisable()
	c.n.Add(1)
	runtime.RaceEnable()
}

func (c *counter) load() uint64 { return c.n.Load() }
