//go:build soak

package jetstream

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// The queue waits for a server that answers after a second, and does nothing twice.
func TestSoakASlowServerIsWaitedFor(t *testing.T) {
	slowServerIsWaitedFor(t, time.Second)
}

// Open does not give up on an engine that answers each request within Config.Wait, even if all
// requests together take longer. A busy disk does not mean that the engine is away.
func TestSoakASlowServerIsOpenedAnswerByAnswer(t *testing.T) {
	p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
	p.set(600*time.Millisecond, false)
	cfg, began := Config{URL: p.url(), Wait: 10 * time.Second, MaxInFlight: 1}, time.Now()
	open(t, cfg)
	soak.AtLeast(t, "time to open", time.Since(began).Seconds(), cfg.Wait.Seconds(), "s", "an Open that is over within Config.Wait shows nothing")
}
