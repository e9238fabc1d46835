package checks

import (
	"cmp"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
)

var update = flag.Bool("update", false, "renew the golden files")

const alerts = "../alerts.yaml"

// rules returns the alerts.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(alerts, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// engine is that of Prometheus.
func engine(t *testing.T) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Hour})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// ask evaluates an expression at a time.
func ask(t *testing.T, e *promql.Engine, db storage.Queryable, expr string, at time.Duration) promql.Vector {
	t.Helper()
	q, err := e.NewInstantQuery(t.Context(), db, nil, expr, epoch.Add(at))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	result, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(result)
}

// fired is an alert that fired, for some labels.
type fired struct {
	rule     *rulefmt.Rule
	labels   labels.Labels
	value    float64       // the latest
	from, to time.Duration // since the first scrape
	open     bool          // it still fires at the end
}

// String leaves out what all alerts have.
func (f *fired) String() string {
	return f.rule.Alert + labels.NewBuilder(f.labels).Del("job", "limiter", "instance").Labels().String()
}

// evaluate evaluates a rule at each scrape, as Prometheus does: an alert is pending as long as
// its expression has a value, and fires when it was pending for the time of the rule.
func evaluate(t *testing.T, e *promql.Engine, db storage.Queryable, rule *rulefmt.Rule, until time.Duration) (all []*fired) {
	t.Helper()
	pending := map[string]*fired{} // by labels
	for at := time.Duration(0); at <= until; at += scraped {
		before := pending
		pending = map[string]*fired{}
		for _, s := range ask(t, e, db, rule.Expr, at) {
			own := s.Metric.String()
			f := before[own]
			if f == nil {
				f = &fired{rule: rule, labels: s.Metric, from: at + time.Duration(rule.For)}
			}
			pending[own], f.value, f.to = f, s.F, at
		}
		for own, f := range before {
			if pending[own] == nil && f.to >= f.from {
				all = append(all, f)
			}
		}
	}
	for _, f := range pending {
		if f.to >= f.from {
			f.open = true
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *fired) int { return cmp.Or(cmp.Compare(a.from, b.from), labels.Compare(a.labels, b.labels)) })
	return all
}

// annotated expands the annotations, as Prometheus does.
func (f *fired) annotated(t *testing.T) map[string]string {
	t.Helper()
	expanded := map[string]string{}
	for name, text := range f.rule.Annotations {
		data := template.AlertTemplateData(f.labels.Map(), nil, "", promql.Sample{F: f.value})
		result, err := template.NewTemplateExpander(t.Context(), "{{$labels := .Labels}}{{$value := .Value}}"+text, f.rule.Alert, data, 0, nil, &url.URL{}, nil).Expand()
		if err != nil {
			t.Errorf("%s, %s: %v", f.rule.Alert, name, err)
		}
		expanded[name] = result
	}
	return expanded
}

// named has the alerts of each trouble that say what it is. Each fires within two minutes.
var named = map[string][]string{
	"overload":       {`SpillwaySheds{result="wait_too_long"}`},
	"stall":          {`SpillwayLittleSucceeds{}`},
	"stall-ignoring": {`SpillwayStalled{}`},
	"bad-deploy":     {`SpillwayLittleSucceeds{}`, `SpillwayFails{kind="GET /patients/{id}"}`},
	"bad-deploy-5":   {`SpillwayFails{kind="GET /patients/{id}"}`},
	"gc":             {`SpillwaySheds{result="memory"}`},
	"processors":     {`SpillwaySheds{result="scheduler"}`},
	"leak":           {`SpillwayLeak{}`},
	"leak-unwatched": {`SpillwayOverdue{}`},
	"slow-clients":   {`SpillwaySlowClients{}`},
	"slow-route":     {`SpillwayKindIsSlow{kind="GET /documents/{id}"}`},
}

// soon is how long after its begin a trouble is named.
const soon = 2 * time.Minute

func TestEachTroubleIsNamedWithinTwoMinutes(t *testing.T) {
	e, all := engine(t), rules(t)
	var table strings.Builder
	fmt.Fprintln(&table, "# When alerts fire in the recorded scenes: seconds after the begin of the trouble, and whether they go on firing.")
	for _, r := range recorded(t) {
		db := r.database()
		fmt.Fprintf(&table, "\n%s\n", r.name)
		within := map[string]bool{}
		for i := range all {
			for _, f := range evaluate(t, e, db, &all[i], r.end) {
				after, name := f.from-r.trouble, f.String()
				for _, text := range f.annotated(t) {
					if strings.Contains(text, "<no value>") || strings.Contains(text, "NaN") {
						t.Errorf("%s: %s says %q", r.name, name, text)
					}
				}
				if after >= 0 && after <= soon {
					within[name] = true
				}
				ends := ""
				if !f.open {
					ends = fmt.Sprintf(" to %.0f", (f.to - r.trouble).Seconds())
				}
				fmt.Fprintf(&table, "  %4.0f%s %s %s\n", after.Seconds(), ends, f.rule.Labels["severity"], name)
				if len(named[r.name]) == 0 || after < 0 {
					t.Errorf("%s: %s fires after %v", r.name, name, after)
				}
			}
		}
		for _, want := range named[r.name] {
			if !within[want] {
				t.Errorf("%s: %s does not fire within %v", r.name, want, soon)
			}
		}
	}
	golden(t, "testdata/fires.txt", table.String())
}

// The calm scene has no alert, however long it lasts. A dry run has none that asks somebody to act now.
// What lasts has further alerts.
func TestCalmAndADryRunWakeNobodyAndWhatLastsHasFurtherAlerts(t *testing.T) {
	further := map[string]string{"calm": "", "overload": "SpillwayDemand{}", "dryrun": "SpillwayEstimateUnsafe{}"}
	e, all := engine(t), rules(t)
	for _, r := range recorded(t) {
		want, listed := further[r.name]
		if !listed {
			continue
		}
		db, found := r.database(), want == ""
		for i := range all {
			for _, f := range evaluate(t, e, db, &all[i], r.end+later) {
				found = found || f.String() == want && f.open
				if len(named[r.name]) == 0 && (r.name != "dryrun" || f.rule.Labels["severity"] != "info") {
					t.Errorf("%s: %v fires after %v", r.name, f, f.from-r.trouble)
				}
			}
		}
		if !found {
			t.Errorf("%s: %s does not fire within %v", r.name, want, later)
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not up to date: look at what differs, then renew it with go test ./deploy/prometheus/checks -args -update; it would be\n%s", file, got)
	}
}
