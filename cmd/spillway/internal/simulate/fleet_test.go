package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
)

// smaller is a built-in scenario with so many tens of replicas in place of its hundred or thousand.
func smaller(t *testing.T, name string, tens int) *Result {
	t.Helper()
	text, err := Source(name)
	if err != nil {
		t.Fatal(err)
	}
	replicas := fmt.Sprintf(`"replicas": %d`, 10*tens)
	fewer := strings.NewReplacer(`"replicas": 1000`, replicas, `"replicas": 100`, replicas,
		`"restart": 10`, fmt.Sprintf(`"restart": %d`, tens), `"clients": 10000`, fmt.Sprintf(`"clients": %d`, 100*tens))
	res, err := parsed(t, fewer.Replace(string(text))).Run(t.Context(), func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Each scenario of a fleet shows what its comment promises, also with few replicas.
func TestBuiltInFleetsShowWhatTheyPromise(t *testing.T) {
	soak.WithoutRace(t)
	promised(t, 1)
}

// promised checks the fleets with so many tens of replicas.
func promised(t *testing.T, tens int) {
	t.Helper()
	for name, want := range map[string]string{
		"fleet-storm": "The smallest sets with which it recovers: limiter.",
		"fleet-queue": "The smallest sets with which it recovers: limiter; budget.",
	} {
		if got := smaller(t, name, tens).findings(); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, recovers := range map[string][]bool{ // unprotected, limiter
		"zone-loss": {false, true}, "rolling-restart": {false, true}, "slow-replica": {true, true}, "slow-replica-seen": {true, true},
	} {
		for i, o := range smaller(t, name, tens).Outcomes {
			if o.Answered.Recovered != recovers[i] {
				t.Errorf("%s: %s: %+v", name, o.Policy, *o.Answered)
			}
		}
	}
}

func TestTheSetsAreAllThereAre(t *testing.T) {
	text := strings.Replace(small, `"duration"`, `"trouble": {"from": "500ms", "to": "1s"}, "oblivious": true, "subsets": {"limiter": {}, "deadlines": {}, "budget": 0.5, "advice": {}}, "duration"`, 1)
	s := parsed(t, text)
	names := map[string]bool{}
	for _, c := range s.contenders {
		names[c.Name] = true
	}
	if len(names) != 16 || !names["nothing"] || !names["limiter + deadlines + budget + advice"] || !names["deadlines + advice"] {
		t.Fatalf("%v", names)
	}
	whole, _ := s.scenario()
	last := s.contenders[15].under(whole)
	if first := s.contenders[0].under(whole); !first.Oblivious || first.Retry.Respect || last.Oblivious || last.Retry.Budget != 0.5 || !last.Retry.Respect {
		t.Errorf("%+v, %+v", first.Retry, last.Retry)
	}
	res, err := s.Run(t.Context(), func(string, float64) {})
	if err != nil || res.findings() != "It recovers with nothing at all." {
		t.Errorf("%v, %s", err, res.findings())
	}
	var out strings.Builder
	if res.Print(&out); !strings.Contains(out.String(), "recovers") {
		t.Error(out.String())
	}
}

func TestWhatIsWrongWithAFleetIsSaidWithItsLine(t *testing.T) {
	for says, add := range map[string]string{
		`line 2: "random" is no balancer: want round_robin`: `"fleet": {"balancer": "random"}`,
		"Fleet: its Replicas is -1":                         `"fleet": {"replicas": -1}`,
		"the trouble is from 1s to 3s":                      `"trouble": {"from": "1s", "to": "3s"}`,
		"line 2: subsets is empty":                          `"subsets": {}`,
		"policies and subsets: want one":                    `"subsets": {"limiter": {}}, "policies": [{"unlimited": {}}]`,
		"use one of Stop, Start and Restart":                `"changes": [{"at": "1s", "stop": true, "restart": 1}]`,
	} {
		if _, err := Parse([]byte(strings.Replace(small, `"duration"`, add+`, "duration"`, 1))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestAnotherLoadAndOtherReplicas(t *testing.T) {
	s, err := ParseWith([]byte(small), Instead{Replicas: 3, Load: "0.7x"})
	if err != nil {
		t.Fatal(err)
	}
	if whole, rate := s.scenario(); whole.Fleet.Replicas != 3 || rate != 0.7*1200 {
		t.Errorf("%d replicas, %v calls a second", whole.Fleet.Replicas, rate)
	}
	for says, instead := range map[string]Instead{
		"Replicas is -1":   {Replicas: -1},
		"load: fast is no": {Load: "fast"},
		"load: \"-1x\" is": {Load: "-1x"},
	} {
		if _, err := ParseWith([]byte(small), instead); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	burst := strings.Replace(small, `{"poisson": "0.5x"}`, `{"constant": 5}`, 1)
	if _, err := ParseWith([]byte(burst), Instead{Load: "2x"}); err == nil || !strings.Contains(err.Error(), "another kind") {
		t.Error(err)
	}
}
