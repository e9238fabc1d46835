package overload

import (
	"context"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/loadgen"
)

// This process plays the program, too, and failsafe by a semaphore.
func TestMain(m *testing.M) {
	all := maps.Clone(Roles)
	all[RoleService] = contestant.Server(func(ctx context.Context, j Job, ready contestant.Ready) (*service.Served, error) {
		return Serve(ctx, j, ready, nil, func() *Guard { return SemaphoreFor(j.Slots, 0) })
	})
	labtest.Main(m, all)
}

// experiments are those of this package, with their scenes.
var experiments = []struct {
	*experiment.Experiment
	scenes []*scene
}{{Experiment, loads}, {Saturation, scarcities}, {Admission, admissions}, {Stories, stories}, {Mixes, mixes}, {Databases, databases}}

func config() Config {
	c := experiment.Sized[Config]("")
	c.Postgres = "postgres://postgres@127.0.0.1:1/postgres" // which nobody asks
	return c
}

// made is so many runs of each cell, with these figures.
func made(t *testing.T, c Config, scenes []*scene, repeats int, figures func(ledger.Key) map[string]float64) (runs []results.Run) {
	t.Helper()
	p, err := planOf(scenes)(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Keys() {
		for repeat := range repeats {
			r := results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Repeat: repeat, Elapsed: 1, Params: map[string]any{"pace": c.Pace}}
			if figures != nil {
				r.Extra = figures(k)
			}
			runs = append(runs, r)
		}
	}
	return runs
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	soak.WithoutRace(t)
	for _, e := range experiments {
		ledgertest.Check(t, e.Family, made(t, config(), e.scenes, 1, nil))
	}
}

// verdicts are those of each part in each set-up.
func verdicts(e *experiment.Experiment, runs []results.Run) map[string]results.Answer {
	out := map[string]results.Answer{}
	for _, c := range e.Family.Judge(ledger.NewEvidence(runs, 1)) {
		for _, a := range c.Answers {
			out[strings.Join([]string{c.ID, a.Part, a.Setup}, "/")] = a
		}
	}
	return out
}

func TestWhatWasNotRunIsOpen(t *testing.T) {
	for _, c := range []struct {
		want  string
		of    int
		set   func(*Config)
		claim string
	}{
		{"without --scene", 0, func(c *Config) { c.Scene = []string{"1.5x"} }, "overload-1//at 10x"},
		{"without --contestant", 0, func(c *Config) { c.Contestant = []string{Spillway, None} }, "overload-3//at 10x"},
		{"It needs PostgreSQL", 1, func(c *Config) { c.Postgres = "" }, "overload-5//PostgreSQL, a sort, 3x"},
		{"without --contestant", 2, func(c *Config) { c.Contestant = []string{Spillway} }, "admission-10//holders, long polls"},
		{"without --quick", 3, func(c *Config) { c.Pace = .4 }, "story-1/after/unprotected"},
		{"without --scene", 4, func(c *Config) { c.Scene = []string{"sqlite-lookups"} }, "mixes-1//SQLite, six lengths, 0.4x"},
		{"without --pace", 5, func(c *Config) { c.Pace = 1.2 }, "engine-4/p99/SQLite, before the change"},
		{"It needs PostgreSQL", 5, func(c *Config) { c.Postgres = "" }, "audit-1/records/PostgreSQL"},
	} {
		with := config()
		c.set(&with)
		e := experiments[c.of]
		a, ok := verdicts(e.Experiment, made(t, with, e.scenes, judge.LeastFollow, nil))[strings.Replace(c.claim, "story-1/after", "story-1/unprotected", 1)]
		if !ok || !strings.Contains(a.Why, c.want) {
			t.Errorf("%s: %q, want %q", c.claim, a.Why, c.want)
		}
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		`unknown contestant "magic"`:        func(c *Config) { c.Contestant = []string{"magic"} },
		`unknown scene "magic"`:             func(c *Config) { c.Scene = []string{"magic"} },
		"pace is 0: want 0.01 to 2":         func(c *Config) { c.Pace = 0 },
		"memory-cap is -1: want at least 0": func(c *Config) { c.MemoryCap = -1 },
		"there is no PostgreSQL":            func(c *Config) { c.Scene = []string{Sort} },
		"postgres is not a URL":             func(c *Config) { c.Postgres = "localhost" },
	} {
		c := experiment.Sized[Config]("")
		spoil(&c)
		if _, _, err := (experiment.Session{}).Run(t.Context(), Saturation, &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A kind that gets nothing is a failure: 0 must not be taken for a figure that is missing.
func TestAStarvedKindFails(t *testing.T) {
	got := verdicts(Mixes, made(t, config(), mixes, judge.LeastFollow, func(k ledger.Key) map[string]float64 {
		if k.Pattern == Spillway && strings.HasSuffix(k.Load, "x, 200 ms") {
			return map[string]float64{answeredInTime.Key: 0, ofFair.Key: 0}
		}
		return map[string]float64{answeredInTime.Key: 99, ofFair.Key: 101, workDone.Key: 900}
	}))
	for name, want := range map[string]results.Verdict{
		"mixes-1//SQLite, six lengths, 0.4x, 200 ms": results.Fails, "mixes-1//PostgreSQL, six lengths, 0.4x, 70 ms": results.Holds,
		"mixes-2/share/SQLite, six lengths, 1.5x, 200 ms": results.Fails, "mixes-2/work/PostgreSQL, six lengths, 1.5x": results.Holds,
	} {
		if a, ok := got[name]; !ok || a.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", name, a.Verdict, a.Why, want)
		}
	}
}

func TestTheBestPoolIsTheSmallestThatIsAsGood(t *testing.T) {
	rates := map[string][2]float64{poolOf(1): {400, 5}, poolOf(2): {800, 6}, poolOf(4): {1_000, 10}, Spillway: {1_000, 20}}
	got := verdicts(Databases, made(t, config(), databases, judge.LeastFollow, func(k ledger.Key) map[string]float64 {
		f, ok := rates[k.Pattern]
		if !ok {
			f = [2]float64{1_015, 90}
		}
		return map[string]float64{"before": f[0], "after": f[0], "p99_before": f[1], "p99_after": f[1]}
	}))
	for _, setup := range []string{"SQLite, before the change", "PostgreSQL, from 5 s after it"} {
		a, b := got["engine-4/throughput/"+setup], got["engine-4/p99/"+setup]
		if a.Verdict != results.Holds || b.Verdict != results.Fails || !strings.Contains(b.Why, "the pool of 4") { // beside the larger pools it would be short
			t.Errorf("%s: %s, %s", setup, a.Why, b.Why)
		}
	}
}

// A process that was killed has spent all of its time, and one that was not and whose
// figure is unknown has none.
func TestAKilledProcessHasSpentEverything(t *testing.T) {
	for want, r := range map[float64]results.Run{100: {Killed: "killed above the memory cap"}, 7: {Extra: map[string]float64{"gc": 7}}} {
		if got := collected.Value(&r); got != want {
			t.Errorf("%+v: %v", r, got)
		}
	}
	if got := collected.Value(&results.Run{}); !math.IsNaN(got) {
		t.Errorf("unknown is %v", got)
	}
}

// Without the surge a service without a limit was measured before anybody was late.
func TestOverloadBeginsWithAQueueAsLongAsTheMostPatientWait(t *testing.T) {
	for _, s := range mixes {
		all, measured := s.stretches(1, 100)
		if n := all[measured]; n.For != s.time || math.Abs(n.Rate-100*s.times) > 1e-9 || all[measured+1].For <= s.longest() {
			t.Errorf("%s at %v: %v", s.name, s.times, all)
		}
		queued := 0.
		for _, x := range all[:measured-1] {
			queued += x.For.Seconds() * (x.Rate/100 - 1)
		}
		if want := map[bool]float64{true: s.longest().Seconds()}[s.times > 1]; math.Abs(queued-want) > 1e-6 {
			t.Errorf("%s at %v: work of %v s is queued, want %v", s.name, s.times, queued, want)
		}
	}
}

// In a load of 1.5 times the capacity every kind's fair share is two thirds.
func TestTheFiguresOfAMix(t *testing.T) {
	res := &loadgen.Result{Offered: 200, Elapsed: 2 * time.Second, Classes: make([]loadgen.ClassResult, 2)}
	add := func(class int, o loadgen.Outcome, n uint64) {
		res.Classes[class].Outcomes[o].Count += n
		res.Outcomes[o].Count += n
	}
	add(0, loadgen.OK, 90)
	add(0, loadgen.Rejected, 60)
	add(0, loadgen.Timeout, 30)
	add(1, loadgen.OK, 12)
	add(1, loadgen.Timeout, 8)
	of := &trial{scene: mixes[0], size: size{capacity: 100. / 1.5}, run: experiment.FromLoad(res), result: res} // 109 ms in ten requests
	runs := mixRuns(of)
	for i, want := range []map[string]float64{
		{answeredInTime.Key: 51, workDone.Key: (90*1 + 12*100) / 2},
		{answeredInTime.Key: 50, ofFair.Key: 75},
		{answeredInTime.Key: 60, ofFair.Key: 90},
	} {
		if len(runs[i].Extra) != len(want) || runs[i].Elapsed != 2 {
			t.Errorf("run %d: %v in %v s", i, runs[i].Extra, runs[i].Elapsed)
		}
		for key, x := range want {
			if got := runs[i].Extra[key]; math.Abs(got-x) > 1e-9*x {
				t.Errorf("run %d: %s is %v, want %v", i, key, got, x)
			}
		}
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	for _, e := range []*experiment.Experiment{Admission, Stories} {
		c := experiment.Sized[Config]("quick")
		c.MostLag, c.MemoryCap, c.Pace = time.Minute, 256, .03 // on a busy machine
		res, runs := labtest.Session(t, e, &c)
		for _, claim := range res.Claims {
			for _, a := range claim.Answers {
				if strings.Contains(a.Why, "was not run") { // in so short a time perhaps nothing is refused
					t.Errorf("%s (%s): %s", claim.ID, a.Setup, a.Why)
				}
			}
			if len(claim.Answers) == 0 {
				t.Errorf("%s has no answer", claim.ID)
			}
		}
		for _, r := range runs {
			if r.Offered == 0 || r.Killed != "" && r.Pattern != unprotected {
				t.Errorf("%s %s: killed %q, offered %d", r.Setup, r.Pattern, r.Killed, r.Offered)
			}
			if r.Pattern == dry && r.Extra["refused"]+r.Extra["shed"] > 0 {
				t.Errorf("%s: a dry run refused %v", r.Setup, r.Extra)
			}
		}
	}
}
