package app

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// shown returns the metrics of a running service with the labels of each. Those of the
// scrape are in all.
func shown(t *testing.T, c Command) map[string][]string {
	t.Helper()
	c.Admin.Addr, c.Traces.Endpoint = "127.0.0.1:0", "http://127.0.0.1:1"
	c.Audit = AuditFlags{Mode: auditOn, DB: filepath.Join(t.TempDir(), "audit.db")}
	r := start(t, c)
	r.get(t, "/api/v1/patients/P000042")
	_, text := r.operate(t, "/metrics")
	names, label := map[string][]string{}, regexp.MustCompile(`(\w+)="`)
	for line := range strings.Lines(text) {
		if name := regexp.MustCompile(`^\w+`).FindString(line); name != "" {
			for _, l := range append(label.FindAllStringSubmatch(line, -1), []string{"", "job"}, []string{"", "instance"}) {
				names[name] = append(names[name], l[1])
			}
		}
	}
	return names
}

// queries returns the expressions of the dashboard and of the alerts.
func queries(t *testing.T) (all []string) {
	t.Helper()
	alerts, err := os.ReadFile("../deploy/alerts.yaml")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (.+)$`).FindAllStringSubmatch(string(alerts), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Error("no alerts")
	}
	text, err := os.ReadFile("../deploy/dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title, Description, Type string
			Targets                  []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	for _, p := range dashboard.Panels {
		if p.Type != "row" && (p.Title == "" || p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %q: no title, description or query", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

func TestTheDashboardShowsWhatTheServiceHasAndAllOfIt(t *testing.T) {
	names := map[string][]string{}
	for _, c := range observed(t) {
		maps.Copy(names, shown(t, c))
	}
	used := regexp.MustCompile(`\b((?:patientapi|process|go|spillway_jobqueue)_\w+)(?:\{([^}]*)\})?`)
	matched, grouped := regexp.MustCompile(`(\w+)=~?"`), regexp.MustCompile(`by \(([^)]*)\)`)
	var asked []string
	for _, q := range queries(t) {
		of := []string{}
		for _, m := range used.FindAllStringSubmatch(q, -1) {
			asked, of = append(asked, m[1]), append(of, names[m[1]]...)
			if names[m[1]] == nil {
				t.Errorf("the service shows no %s", m[1])
			}
			for _, l := range matched.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(names[m[1]], l[1]) {
					t.Errorf("%s has no label %s", m[1], l[1])
				}
			}
		}
		for _, m := range grouped.FindAllStringSubmatch(q, -1) {
			for l := range strings.SplitSeq(m[1], ", ") {
				if !slices.Contains(of, l) {
					t.Errorf("no label %s in %s", l, q)
				}
			}
		}
	}
	for name := range names {
		of := strings.TrimSuffix(name, "_sum")
		if (strings.HasPrefix(name, "patientapi_") || strings.HasPrefix(name, "spillway_jobqueue_")) && !slices.ContainsFunc(asked, func(a string) bool { return strings.HasPrefix(a, of) }) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// observed are commands that show all metrics between them.
func observed(t *testing.T) []Command {
	c := quick()
	c.Store.Kind = postgrestest.New(t, 20).URL
	c.Exports.Dir = t.TempDir() + "/exports"
	c.Engine = slowEngine(func(context.Context) error { return nil })
	return []Command{quick(), c}
}
