package fleet

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

func TestMain(m *testing.M) { labtest.Main(m, Experiment.Roles) }

func TestVerdictsFollowTheFigures(t *testing.T) {
	p, err := experiment.Sized[Config]("").plan()
	if err != nil {
		t.Fatal(err)
	}
	var runs []results.Run
	for _, k := range p.Keys() {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Elapsed: 1})
	}
	planted.Check(t, Experiment.Family, runs)
}

func TestBadSettingsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"replicas is 1: want 2 to 16":          func(c *Config) { c.Replicas = 1 },
		"trouble is 0s: want more than 0s":     func(c *Config) { c.Trouble = 0 },
		"min-work 1m0s is above max-work 60ms": func(c *Config) { c.Min = time.Minute },
	} {
		c := experiment.Sized[Config]("")
		spoil(&c)
		if _, _, err := (experiment.Session{}).Run(t.Context(), Experiment, &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAShortTroubleLeavesTheGoalsOpen(t *testing.T) {
	var runs []results.Run
	for n := range 5 {
		for _, pattern := range []string{unprotected, protected} {
			k := key(pattern)
			runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: pattern, Repeat: n, Elapsed: 1, Params: map[string]any{"trouble": 2., "after": 6.},
				Extra: map[string]float64{"during_real": 30, "during_sim": 31, "after_real": 100, "after_sim": 100}})
		}
	}
	for _, claim := range Experiment.Family.Judge(ledger.NewEvidence(runs, 1)) {
		if claim.Verdict != results.Inconclusive || !strings.Contains(claim.Why, "without --quick") {
			t.Errorf("%s is %s: %s", claim.ID, claim.Verdict, claim.Why)
		}
	}
}

func TestASmallSessionRunsEveryCell(t *testing.T) {
	for _, r := range smallSession(t, 200*time.Millisecond) {
		if r.Offered == 0 || r.Killed != "" {
			t.Errorf("%s: %d offered, killed %q", r.Pattern, r.Offered, r.Killed)
		}
	}
}

// smallSession is short runs over two replicas, undisturbed.
func smallSession(t *testing.T, unit time.Duration) []results.Run {
	t.Helper()
	c := experiment.Sized[Config]("quick")
	c.MostLag, c.Replicas = time.Minute, 2 // under the race detector
	c.WarmUp, c.Trouble, c.After = unit, unit, 2*unit
	c.Slots, c.Min, c.Max = 2, 10*time.Millisecond, 20*time.Millisecond
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0),
		Watch: func() func() float64 { return func() float64 { return 0 } }}
	res, runs, err := s.Run(t.Context(), Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	return runs
}

// inProcess is the replicas without a network, in whose place time may be virtual.
type inProcess map[string]http.Handler

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	p[r.URL.Host].ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// The code of the processes, in virtual time, does what the simulator says. The law's
// trials are random: one trouble of eight seconds has 6 % more or less.
func TestTheSimulatorIsRightAboutAFleet(t *testing.T) {
	soak.WithoutRace(t)
	const seeds = 8
	for _, pattern := range []string{unprotected, protected} {
		j := job{Protected: pattern == protected, Config: experiment.Sized[Config]("")}
		j.Trouble, j.After = 8*time.Second, 8*time.Second
		said, err := j.simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for seed := range uint64(seeds) {
			j.Seed = seed
			for name, x := range figures(j.Config, told(t, j), said) {
				got[name] += x / seeds
			}
		}
		t.Log(pattern, got)
		for _, when := range []string{"before", "during", "after"} {
			is, said := got[when+"_real"], got[when+"_sim"]
			if d := said - is; d > 10 || d < -10 || j.Protected && (said < .9*is || said > 1.1*is) {
				t.Errorf("%s %s: %.1f %%, and the simulator says %.1f %%", pattern, when, is, said)
			}
		}
	}
}

// told is the storm over four replicas in virtual time.
func told(t *testing.T, j job) (answered func(from, to time.Duration) float64) {
	synctest.Test(t, func(t *testing.T) {
		fleet := inProcess{}
		var hosts []string
		for _, host := range []string{"a", "b", "c", "d"} {
			of := j
			of.Seed += uint64(len(hosts)) << 32
			handler, _, end, err := replica(of)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			fleet[host], hosts = handler, append(hosts, host)
		}
		c, err := newCrowd(hosts, j)
		if err != nil {
			t.Fatal(err)
		}
		c.to = fleet
		var mu sync.Mutex
		draws := rand.New(rand.NewPCG(j.Seed, 1))
		c.random = func(n int64) int64 {
			mu.Lock()
			defer mu.Unlock()
			return draws.Int64N(n)
		}
		sent := service.Load{Seed: j.Seed, Stretches: []service.Stretch{{Rate: load * 4 * j.Capacity(), For: j.length()}}}
		if _, err := sent.Send(t.Context(), c.do); err != nil {
			t.Fatal(err)
		}
		answered = c.answered
	})
	return answered
}
