package stories

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
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
		`unknown part "magic"`:                 func(c *Config) { c.Part = []string{"magic"} },
		"time is 0s: want more than 0s":        func(c *Config) { c.Time = 0 },
		"warm-up is 0s: want more than 0s":     func(c *Config) { c.WarmUp = 0 },
		"trigger is 0s: want more than 0s":     func(c *Config) { c.Trigger = 0 },
		"after is 0s: want more than 0s":       func(c *Config) { c.After = 0 },
		"query is -1s: want more than 0s":      func(c *Config) { c.Query = -time.Second },
		"slots is 0: want at least 1":          func(c *Config) { c.Slots = 0 },
		"min-work 1m0s is above max-work 60ms": func(c *Config) { c.Min = time.Minute },
		"memory-cap is -1: want at least 0":    func(c *Config) { c.MemoryCap = -1 },
	} {
		c := experiment.Sized[Config]("")
		spoil(&c)
		if _, _, err := (experiment.Session{}).Run(t.Context(), Experiment, &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestOnlyTheStoriesThatWereAskedForAreTold(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.Part = []string{"herd", "memory"}
	p, err := c.plan()
	if err != nil || len(p.Cells) != 4 {
		t.Fatalf("%d cells, %v", len(p.Cells), err)
	}
	for _, cell := range p.Cells {
		if cell.Setup != "herd" && cell.Setup != "memory" {
			t.Errorf("%v is told", cell.Key())
		}
	}
}

// A goal speaks of times, which a short session does not reach.
func TestAShortTroubleLeavesTheFirstGoalOpen(t *testing.T) {
	var runs []results.Run
	for n := range 5 {
		for _, pattern := range []string{unprotected, protected} {
			k := metastable.key(pattern)
			runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: pattern, Repeat: n, Elapsed: 1,
				Params: map[string]any{"trigger": 10., "after": 8.}, Extra: map[string]float64{"before": 100, "after": 0, "settled": 100}})
		}
	}
	judged := func() results.Claim { return Experiment.Family.Judge(ledger.NewEvidence(runs, 1))[0] }
	if got := judged(); got.Verdict != results.Inconclusive || !strings.Contains(got.Why, "without --quick") {
		t.Errorf("%s: %s", got.Verdict, got.Why)
	}
	for _, r := range runs {
		r.Params["after"] = 30.
	}
	if got := judged(); got.Verdict != results.Holds {
		t.Errorf("%s: %s", got.Verdict, got.Why)
	}
}

// A process that was killed has spent all of its time, and one that was not and whose
// figure is unknown has none.
func TestAKilledProcessHasSpentEverything(t *testing.T) {
	known := map[string]float64{"gc": 7}
	for want, r := range map[float64]results.Run{100: {Killed: "killed above the memory cap"}, 7: {Extra: known}} {
		if got := collected.Value(&r); got != want {
			t.Errorf("%+v: %v", r, got)
		}
	}
	if got := collected.Value(&results.Run{}); !math.IsNaN(got) {
		t.Errorf("unknown is %v", got)
	}
}

func TestASmallSessionTellsEveryStory(t *testing.T) {
	soak.WithoutRace(t)
	res, runs := smallSession(t, 100*time.Millisecond)
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			if strings.Contains(a.Why, "was not run") {
				t.Errorf("%s (%s): %s", claim.ID, a.Setup, a.Why)
			}
		}
		if len(claim.Answers) == 0 {
			t.Errorf("%s has no answer", claim.ID)
		}
	}
	for _, r := range runs {
		if r.Offered == 0 {
			t.Errorf("%s %s was offered nothing", r.Setup, r.Pattern)
		}
	}
}

// smallSession is a session of short stories, undisturbed.
func smallSession(t *testing.T, unit time.Duration) (results.Results, []results.Run) {
	t.Helper()
	c := experiment.Sized[Config]("quick")
	c.MostLag, c.MemoryCap = time.Minute, 256 // under the race detector
	c.WarmUp, c.Trigger, c.After, c.Query, c.Time = 2*unit, unit, 2*unit, unit, 3*unit
	c.Slots, c.Min, c.Max = 4, 10*time.Millisecond, 20*time.Millisecond
	undisturbed := func() func() float64 { return func() float64 { return 0 } }
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0), Watch: undisturbed}
	res, runs, err := s.Run(t.Context(), Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	return res, runs
}

// inProcess is a service without a network, in whose place time may be virtual.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// tell tells a story in virtual time, and returns its figures.
func tell(t *testing.T, s story, pattern string, c Config) (figures map[string]float64) {
	synctest.Test(t, func(t *testing.T) {
		j := job{Story: s.name, Protected: pattern == protected, Config: c, Seed: 1}
		f := &front{protected: j.Protected}
		defer f.close()
		handler, err := s.service(j, f)
		if err != nil {
			t.Fatal(err)
		}
		load := s.sends(c)
		load.Seed = j.Seed
		seen, err := newCrowd(s.crowd(c), "http://service", inProcess{handler}, j.Protected, load)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := load.Send(t.Context(), seen.do); err != nil {
			t.Fatal(err)
		}
		figures = s.figures(c, seen, &results.Run{})
	})
	t.Log(s.name, pattern, figures)
	return figures
}

func TestRetriesKeepAPlainServiceDown(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.After = 12 * time.Second
	plain, ours := tell(t, metastable, unprotected, c), tell(t, metastable, protected, c)
	if plain["before"] < 95 || plain["after"] >= 20 {
		t.Errorf("unprotected: %v", plain)
	}
	if ours["before"] < 95 || ours["settled"] <= 95 {
		t.Errorf("protected: %v", ours)
	}
}

func TestAColdCacheKeepsAPlainServiceDown(t *testing.T) {
	c := experiment.Sized[Config]("")
	plain, ours := tell(t, herd, unprotected, c), tell(t, herd, protected, c)
	if plain["never"] != 1 || plain["recovery_s"] < 2*c.Time.Seconds() {
		t.Errorf("unprotected: %v", plain)
	}
	if ours["never"] != 0 || ours["recovery_s"] > plain["recovery_s"]/2 {
		t.Errorf("protected: %v", ours)
	}
}

func TestASlowQueryTakesTheConnectionsOfAPlainService(t *testing.T) {
	c := experiment.Sized[Config]("quick")
	plain, ours := tell(t, query, unprotected, c), tell(t, query, protected, c)
	if plain["critical"] > 80 {
		t.Errorf("unprotected: %v", plain)
	}
	if ours["critical"] < 99 {
		t.Errorf("protected: %v", ours)
	}
}
