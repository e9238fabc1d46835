//go:build soak

package jetstream

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// A server that answers after a second is waited for, and nothing is done twice.
func TestSoakASlowServerIsWaitedFor(t *testing.T) {
	slowServerIsWaitedFor(t, time.Second)
}

// An engine that answers all that Open asks, each in less than Config.Wait, is not given up
// because all of it takes longer: a busy disk is no engine that is away.
func TestSoakASlowServerIsOpenedAnswerByAnswer(t *testing.T) {
	p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
	p.set(600*time.Millisecond, false)
	cfg, began := Config{URL: p.url(), Wait: 10 * time.Second, MaxInFlight: 1}, time.Now()
	open(t, cfg)
	soak.AtLeast(t, "time to open", time.Since(began).Seconds(), cfg.Wait.Seconds(), "s", "an Open that is over within Config.Wait shows nothing")
}
