package checks

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// decode reads a file of deploy/kubernetes.
func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../kubernetes/" + file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// scaler is a query, and the value of it that a replica should have.
type scaler struct {
	name, query string
	target      float64
}

func scalers(t *testing.T) []scaler {
	t.Helper()
	var keda struct {
		Spec struct {
			Triggers []struct {
				Metadata struct{ Query, Threshold string }
			}
		}
	}
	var adapter struct {
		Rules struct {
			Custom []struct {
				MetricsQuery string `yaml:"metricsQuery"`
			}
		}
	}
	var hpa struct {
		Spec struct {
			Metrics []struct {
				Pods struct {
					Target struct {
						AverageValue string `yaml:"averageValue"`
					}
				}
			}
		}
	}
	decode(t, "keda.yaml", &keda)
	decode(t, "prometheus-adapter.yaml", &adapter)
	decode(t, "hpa.yaml", &hpa)
	trigger := keda.Spec.Triggers[0].Metadata
	threshold, err := strconv.ParseFloat(trigger.Threshold, 64)
	if err != nil {
		t.Fatal(err)
	}
	thousandths, isMilli := strings.CutSuffix(hpa.Spec.Metrics[0].Pods.Target.AverageValue, "m")
	average, err := strconv.ParseFloat(thousandths, 64)
	if err != nil || !isMilli {
		t.Fatalf("the target is %sm, %v", thousandths, err)
	}
	// What prometheus-adapter fills in for hpa.yaml.
	filled := strings.NewReplacer("<<.GroupBy>>", "pod", "<<.LabelMatchers>>", `limiter="http",namespace="default",pod=~"patientapi-1"`)
	all := []scaler{
		{"keda", trigger.Query, threshold},
		{"hpa", filled.Replace(adapter.Rules.Custom[0].MetricsQuery), average / 1000},
	}
	for _, s := range all { // what is full at most is full by the same measure
		if full := fmt.Sprintf(", %v)", s.target); !strings.Contains(s.query, full) {
			t.Errorf("%s: the query has no %q: %s", s.name, full, s.query)
		}
	}
	return all
}

// scales says whether an autoscaler asks for more replicas in a scene: within two minutes, or never. In
// a scene that is not listed it may do either.
var scales = map[string]bool{
	"overload":       true,
	"processors":     true,
	"calm":           false,
	"stall":          false,
	"stall-ignoring": false,
	"bad-deploy":     false,
	"bad-deploy-5":   false,
	"leak":           false,
	"slow-clients":   false,
}

// One replica is there. An autoscaler asks for more where more capacity helps, and never where the
// database is dead, not even at the begin of the trouble.
func TestDemandScalesNothingTowardsADeadDatabase(t *testing.T) {
	e := engine(t)
	for _, r := range recorded(t) {
		more, listed := scales[r.name]
		db := r.database()
		if r.name == "stall" || r.name == "stall-ignoring" { // or the scene shows nothing
			if alone := ask(t, e, db, "max(max_over_time(spillway_demand[1m]))", r.end); len(alone) != 1 || alone[0].F < 10 {
				t.Errorf("%s: demand alone is %v", r.name, alone)
			}
		}
		for _, by := range scalers(t) {
			most, asked := 0.0, time.Duration(-1)
			for at := time.Duration(0); at <= r.end; at += scraped {
				found := ask(t, e, db, by.query, at)
				if len(found) != 1 || math.IsNaN(found[0].F) {
					if at >= time.Minute {
						t.Errorf("%s, %s: after %v the query has the values %v, want one", r.name, by.name, at, found)
					}
					continue
				}
				replicas := math.Ceil(found[0].F/by.target - .1) // both autoscalers tolerate a tenth
				most = max(most, replicas)
				if replicas > 1 && asked < 0 {
					asked = at - r.trouble
				}
			}
			t.Logf("%s, %s: at most %.0f replicas, first after %v", r.name, by.name, most, asked)
			switch {
			case !listed:
			case more && (asked < 0 || asked > soon):
				t.Errorf("%s, %s: more replicas are asked for after %v", r.name, by.name, asked)
			case !more && most > 1:
				t.Errorf("%s, %s: %.0f replicas are asked for after %v", r.name, by.name, most, asked)
			}
		}
	}
}
