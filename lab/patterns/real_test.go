package patterns

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// onPostgres is the configuration of a size with a database that nobody asks.
func onPostgres(size string) Config {
	c := experiment.Sized[Config](size)
	c.Postgres = "postgres://postgres@127.0.0.1:1/postgres"
	return c
}

// claimsOf judges the runs.
func claimsOf(runs []results.Run) map[string]results.Claim {
	out := map[string]results.Claim{}
	for _, c := range Experiment.Family.Judge(ledger.NewEvidence(runs, 1)) {
		out[c.ID] = c
	}
	return out
}

func TestARealDatabaseDecidesOverItsModel(t *testing.T) {
	for _, real := range []bool{false, true} {
		c := experiment.Sized[Config]("full")
		if real {
			c = onPostgres("full")
		}
		claims := claimsOf(made(c))
		for _, id := range []string{"H6", "H7", "H8"} {
			for _, a := range claims[id].Answers {
				if a.Part == "memory" {
					continue // for which no database is asked
				}
				onReal := strings.HasPrefix(a.Setup, OnPostgres)
				if decides := !a.Beside; decides && onReal != real || onReal && !real {
					t.Errorf("with a database %v: %s of %s decides %v", real, a.Setup, id, decides)
				}
				if model := strings.Contains(a.Why, "NOT A REAL DATABASE"); model != (!real && !a.Beside) {
					t.Errorf("with a database %v: %s of %s: %s", real, a.Setup, id, a.Why)
				}
			}
		}
		for _, id := range []string{"H6-adaptive", "H7-adaptive", "H8-adaptive"} {
			open := strings.Contains(claims[id].Why, "--postgres URL")
			if open == real {
				t.Errorf("with a database %v: %s: %s", real, id, claims[id].Why)
			}
		}
	}
}

func TestTheGoalOfTheCrowdIsOpenWithFewerUsers(t *testing.T) {
	c := onPostgres("full")
	c.Users = 500
	if why := claimsOf(made(c))["H6-adaptive"].Why; !strings.Contains(why, "10,000 users") {
		t.Error(why)
	}
}

func TestScenariosOnARealDatabase(t *testing.T) {
	c := onPostgres("")
	plan, err := Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, cell := range plan.Cells {
		if strings.HasPrefix(cell.Setup, OnPostgres) {
			seen[cell.Setup]++
		}
	}
	if want := "map[PostgreSQL, a database of 100 connections:4 PostgreSQL, a query that takes 30 s:3 PostgreSQL, two services on one database:5]"; fmt.Sprint(seen) != want {
		t.Errorf("%v", seen)
	}
	for _, s := range scenarios {
		if s.name == "" {
			continue
		}
		c.Scenario = []string{s.name}
		alone, err := Plan(c)
		if err != nil || len(alone.Cells) != seen[s.setup] || len(alone.Groups)+len(alone.Demos) != 0 {
			t.Errorf("%s alone: %d cells, %v", s.name, len(alone.Cells), err)
		}
		if takes := alone.Expect(5); takes > 5*time.Minute {
			t.Errorf("%s takes %v", s.name, takes)
		}
	}
}

func TestWhatIsAskedOfARealDatabaseIsChecked(t *testing.T) {
	for want, set := range map[string]func(*Config){
		`unknown scenario "flood"`:        func(c *Config) { c.Scenario = []string{"flood"} },
		"name its server with --postgres": func(c *Config) { c.Postgres, c.Scenario = "", []string{"crowd"} },
		"postgres is not a URL":           func(c *Config) { c.Postgres = "host=localhost password=sesame" },
		"this session may have":           func(c *Config) { c.Users = 100_000_000 },
	} {
		c := onPostgres("")
		set(&c)
		if _, err := Plan(c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestThePasswordOfTheServerIsNotKept(t *testing.T) {
	c := onPostgres("")
	c.Postgres = "postgres://postgres:opensesame@127.0.0.1:1/postgres"
	kept, err := json.Marshal(c)
	if err != nil || strings.Contains(string(kept), "sesame") || strings.Contains(fmt.Sprintf("%v %+v %#v %s", c, c, c, c.Postgres), "sesame") {
		t.Errorf("%s, %v", kept, err)
	}
	t.Setenv("SPILLWAY_POSTGRES", "postgres://other@127.0.0.1:1/postgres")
	var again Config
	if err := json.Unmarshal(kept, &again); err != nil || again.Postgres != "postgres://other@127.0.0.1:1/postgres" || again.Users != c.Users {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestWhatAServiceHeldIsSeenInTheLastThird(t *testing.T) {
	began := time.Now()
	var samples []service.Sample
	for step := range 300 { // for 10 s few more than before, then one for each request
		at := time.Duration(step) * 100 * time.Millisecond
		held := 30 + max(0, int((at-10*time.Second).Seconds()*stallRate))
		samples = append(samples, service.Sample{At: began.Add(at), InFlight: held, Limit: 7})
	}
	run := results.Run{Elapsed: 30, Extra: map[string]float64{}, Series: []results.Point{{At: .05}, {At: 29.9}, {At: 40}}}
	addGrowth(&run, heldSince(began, samples), 20, 30)
	addSamples(run.Series, samples, began)
	if g := run.Extra[growth.Key]; math.Abs(g-1) > .01 || run.Extra[mostGoroutines.Key] < 6_600 {
		t.Errorf("%v", run.Extra)
	}
	if p := run.Series; p[0].InFlight != 30 || p[1].InFlight < 6_600 || p[2].InFlight != p[1].InFlight || p[1].Limit != 7 {
		t.Errorf("%+v", p)
	}
	none := results.Run{Extra: map[string]float64{}, Series: []results.Point{{}}}
	addGrowth(&none, heldSince(began, nil), 0, 1)
	addSamples(none.Series, nil, began)
	if len(none.Extra) > 0 {
		t.Errorf("of nothing: %v", none.Extra)
	}
}

func TestEveryScenarioHasItsGoals(t *testing.T) {
	e := ledger.NewEvidence(made(onPostgres("full")), 1)
	for _, claim := range []ledger.Claim{goalOfCrowd, goalOfStall, goalOfNeighbours} {
		for _, p := range claim.Parts {
			decides := slices.DeleteFunc(p.Cases(e), func(c ledger.Case) bool { return c.Beside })
			if len(decides) != 1 || !strings.HasSuffix(decides[0].Setup, ", "+Adaptive) || !p.Rule.Contains(map[string]float64{"refused": 0}[p.ID]+map[string]float64{"goodput": 95, "critical": 99.5, "neighbour": 96}[p.ID]) {
				t.Errorf("%s/%s: %+v", claim.ID, p.ID, decides)
			}
		}
	}
}
