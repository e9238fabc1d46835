package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// A limit would prevent a standing queue in the backend: work that would have
// been refused must not keep other work from being admitted.
func TestADryRunLeavesOutWhatItWouldHaveRefused(t *testing.T) {
	const took, limited = 100 * time.Millisecond, 10
	g := New(Config{Law: limit.NewFixed(limited), MaxWait: time.Second})
	now := time.Duration(0)
	var running []Grant
	for range 4000 { // twice the capacity of ten slots; work takes ever longer
		now += took / limited / 2
		for len(running) > 0 && running[0].Start+took <= now && len(running)%2 == 0 {
			g.End(now, running[0], limit.Success)
			running = running[1:]
		}
		g.Force(now, Arrival{Cost: 1, Deadline: Never}, false, 0)
		running = append(running, Grant{Seq: g.Seq(), Start: now, Cost: 1})
	}
	c := g.Counts()
	if share := float64(c.WouldReject()) / float64(c.Offered); share < 0.45 || share > 0.55 {
		t.Errorf("half of it is too much, %.2f would be refused", share)
	}
}

func TestAShadowEndsWithEnforcement(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1)})
	g.Force(0, Arrival{Cost: 1, Deadline: Never}, false, 0)
	g.End(1, Grant{Seq: g.Seq(), Cost: 1}, limit.Success)
	if g.shadow == nil {
		t.Fatal("a dry run without a shadow")
	}
	g.Arrive(2, Arrival{Cost: 1, Deadline: Never}, nil)
	g.End(3, Grant{Seq: g.Seq(), Start: 2, Cost: 1}, limit.Success)
	if g.shadow != nil {
		t.Error("it stays")
	}
}
