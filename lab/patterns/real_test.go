package patterns

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Without a server SQLite decides what it can decide, and what it cannot says what it needs.
func TestPostgresDecidesWhereItWasMeasured(t *testing.T) {
	for _, server := range []bool{false, true} {
		c := experiment.Sized[Config]("")
		if server {
			c = onPostgres("")
		}
		claims := claimsOf(t, c)
		for _, a := range claims["H8"].Answers {
			if on := strings.HasPrefix(a.Setup, OnPostgres); !a.Beside && on != server {
				t.Errorf("with a server %v: %s of H8/%s decides", server, a.Setup, a.Part)
			}
		}
		for _, id := range []string{"H6", "H6-adaptive", "H7-adaptive", "H8-adaptive"} {
			if open := strings.Contains(claims[id].Why, "--postgres URL"); open == server {
				t.Errorf("with a server %v: %s: %s", server, id, claims[id].Why)
			}
		}
		for _, a := range claims["H5"].Answers {
			if open := strings.Contains(a.Why, "name a server with --postgres"); open != (!server && a.Part == "postgres" && !a.Beside) {
				t.Errorf("with a server %v: %s, %s: %s", server, a.Part, a.Setup, a.Why)
			}
		}
	}
}

func TestWhatIsAboutTheCrowdIsOpenWithFewerUsers(t *testing.T) {
	c := onPostgres("")
	c.Users = 500
	claims := claimsOf(t, c)
	for _, id := range []string{"H6", "H6-adaptive", "H7"} {
		if !slices.ContainsFunc(claims[id].Answers, func(a results.Answer) bool { return strings.Contains(a.Why, "10,000 users") }) {
			t.Errorf("%s: %s", id, claims[id].Why)
		}
	}
}

func TestScenariosOnPostgres(t *testing.T) {
	c := onPostgres("")
	want := map[string]int{"crowd": 4, "stall": 3, "neighbours": 5} // of them a twin
	for name, cells := range want {
		c.Scenario = []string{name}
		alone, err := Plan(c)
		if err != nil || len(alone.Cells) != cells || len(alone.Groups) != 0 {
			t.Errorf("%s alone: %d cells, %v", name, len(alone.Cells), err)
		}
		if takes := alone.Expect(5); takes > 5*time.Minute {
			t.Errorf("%s takes %v", name, takes)
		}
	}
	for chosen, want := range map[string]int{Naive: 1 + 1 + 3, WorkerPool: 1 + 1 + 3, Limiter: 2 + 1 + 3} { // those beside nobody, with its twin
		c.Contestant, c.Scenario = []string{chosen}, []string{"crowd", "stall", "neighbours"}
		if p, err := Plan(c); err != nil || len(p.Cells) != want {
			t.Errorf("%s: %d cells, %v", chosen, len(p.Cells), err)
		}
	}
}
