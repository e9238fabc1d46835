package agents

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

// A clock that jumps during the run makes it invalid; one that drifts is in a warning; and a
// network that is slow is neither.
func TestClocksAreComparedDuringTheRun(t *testing.T) {
	jump := func(by time.Duration) func(int, time.Duration) time.Duration {
		return func(agent int, since time.Duration) time.Duration {
			if agent == 1 && since > 20*time.Second {
				since += by
			}
			return since
		}
	}
	for name, c := range map[string]struct {
		clock            func(int, time.Duration) time.Duration
		slow             bool
		invalid, warning string
	}{
		"right":        {},
		"ahead":        {clock: jump(70 * time.Millisecond), invalid: "clock of agent 2 (agent-1) jumped by ", warning: "70ms from where it was"},
		"back":         {clock: jump(-2 * time.Second), invalid: "clock of agent 2 (agent-1) jumped by -", warning: "-2s from where it was"},
		"a little":     {clock: jump(40 * time.Millisecond), warning: "agent 2 (agent-1) was 40ms from where it was"},
		"slow network": {slow: true},
		"jump, slow":   {clock: jump(time.Second), slow: true, invalid: "clock of agent 2 (agent-1) jumped by ", warning: "from where it was"},
		"drift": {clock: func(agent int, since time.Duration) time.Duration {
			return since + time.Duration(agent)*since/5000
		}, warning: "agent 2 (agent-1) was 60."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const whole = 300 * time.Second
				w := newWorld(t, 2, loadgen.Config{Open: loadgen.Constant(10, whole)})
				w.clock = c.clock
				if c.slow {
					random := rand.New(rand.NewPCG(1, 2)) // the bus asks one at a time
					w.bus.delay = func(data []byte) time.Duration {
						if m, err := decode(data); err != nil || m.Beat == nil {
							return 0
						}
						return time.Duration(random.Int64N(int64(300 * time.Millisecond)))
					}
				}
				began := time.Now()
				r, err := w.coordinate(t.Context(), w.bus)
				if err != nil {
					t.Fatal(err)
				}
				if (c.invalid == "") != (r.Invalid == "") || !strings.Contains(r.Invalid, c.invalid) || r.Result.Partial == (c.invalid == "") {
					t.Errorf("invalid: %q, partial %v", r.Invalid, r.Result.Partial)
				}
				if said := strings.Join(r.Warnings, "; "); (c.warning == "") != (said == "") || !strings.Contains(said, c.warning) {
					t.Errorf("warnings: %q", said)
				}
				if took := time.Since(began); c.invalid != "" && took > 25*time.Second {
					t.Errorf("it was noticed after %v", took)
				}
				if r.Agents[0].ClockMoved != 0 {
					t.Errorf("the other clock moved by %v", r.Agents[0].ClockMoved)
				}
			})
		})
	}
}

// Whatever trips take, a clock that drifts little never jumps, and one that jumps never by more than
// it did.
func FuzzWatchedClock(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 4))
		upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
		speed := 1 + (r.Float64()-.5)*drift
		ahead, now := upTo(time.Hour), upTo(time.Hour)
		other := func() time.Duration { return ahead + time.Duration(speed*float64(now)) }
		w := watchedClock{first: span{other() - now - upTo(time.Second), other() - now + upTo(time.Second)}}
		jumped := time.Duration(0) // in all
		seen := time.Duration(0)
		for range 300 {
			left := now
			now += upTo(100 * time.Millisecond)
			came := other()
			if r.IntN(50) == 0 {
				by := upTo(4*time.Second) - 2*time.Second
				ahead += by
				jumped += by.Abs()
			}
			now += upTo(300 * time.Millisecond)
			if r.IntN(50) == 0 {
				by := upTo(4*time.Second) - 2*time.Second
				ahead += by
				jumped += by.Abs()
			}
			went := other()
			now += upTo(100 * time.Millisecond)
			seen += w.see(now, between(left, came, went, now)).Abs()
			if seen > jumped+time.Millisecond {
				t.Fatalf("it saw jumps of %v, there were %v", seen, jumped)
			}
		}
	})
}
