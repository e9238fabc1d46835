//go:build soak && !race

package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/internal/labtest"
)

// oneReplica says which replica of a storm a process is.
type oneReplica struct {
	storm
	Index int
}

// serve is a replica in a process of its own.
func serve(ctx context.Context, p oneReplica, ready contestant.Ready) (*Served, error) {
	handler, end, err := p.replica(p.Index)
	if err != nil {
		return nil, err
	}
	defer end()
	return Serve(ctx, ready, &http.Server{Handler: handler}, func(*Sample) {})
}

func TestMain(m *testing.M) {
	labtest.Main(m, map[string]contestant.Role{"replica": contestant.Server(serve)})
}

// A storm over four processes ends as the simulator says: without protection they stay down, and
// with it they are back after five seconds.
func TestSoakAFleetOfProcessesDoesWhatTheSimulatorSays(t *testing.T) {
	for name, s := range map[string]storm{"unprotected": {false, 1}, "protected": {true, 1}} {
		t.Run(name, func(t *testing.T) { s.processes(t, name) })
	}
}

// processes plays the storm over four processes.
func (s storm) processes(t *testing.T, name string) {
	var hosts []string
	for i := range stormReplicas {
		r, err := Start(t.Context(), contestant.Spec{Role: "replica", Input: oneReplica{s, i}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Stop(t.Context(), nil)
		hosts = append(hosts, r.Address)
	}
	is, res := s.play(t, &http.Transport{MaxIdleConnsPerHost: 2000}, hosts, rand.Int64N)
	said := s.simulated(t)
	soak.Within(t, name+": clients sent late, p99", time.Duration(res.Lag.Quantile(.99)), 50*time.Millisecond, "what is sent late comes all at once: the test would measure a busy machine")
	during, after := name+": clients answered in the trouble", name+": clients answered from five seconds after the trouble on"
	as := fmt.Sprintf("the simulator says %.1f %%", said[1])
	if s.Protected {
		soak.AtLeast(t, during, is[1], .7*said[1], "%", as+", and the trials of the law are random: the mean of eight in virtual time is within a tenth")
		soak.AtMost(t, during, is[1], 1.3*said[1], "%", as)
		soak.AtLeast(t, after, is[2], 95, "%", fmt.Sprintf("it is back; the simulator says %.1f %%", said[2]))
	} else {
		soak.AtMost(t, during, is[1], said[1]+10, "%", as)
		soak.AtMost(t, after, is[2], 20, "%", fmt.Sprintf("it stays down; the simulator says %.1f %%", said[2]))
	}
}
