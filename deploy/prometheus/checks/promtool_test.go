package checks

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// The file of a test of promtool, which reads JSON as YAML.
type (
	promtoolFile struct {
		RuleFiles          []string       `json:"rule_files"`
		EvaluationInterval string         `json:"evaluation_interval"`
		Tests              []promtoolTest `json:"tests"`
	}
	promtoolTest struct {
		Name     string           `json:"name"`
		Interval string           `json:"interval"`
		Input    []promtoolSeries `json:"input_series"`
		Alerts   []promtoolAlert  `json:"alert_rule_test"`
	}
	promtoolSeries struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	promtoolAlert struct {
		EvalTime string             `json:"eval_time"`
		Name     string             `json:"alertname"`
		Expected []promtoolExpected `json:"exp_alerts"`
	}
	promtoolExpected struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	}
)

// Two minutes after each trouble has begun, promtool finds the same alerts as this package, with the same words.
func TestPromtoolFindsTheSame(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool: it comes with Prometheus. The other tests evaluate the same rules")
	}
	rulesFile, err := filepath.Abs(alerts)
	if err != nil {
		t.Fatal(err)
	}
	e, all := engine(t), rules(t)
	file := promtoolFile{RuleFiles: []string{rulesFile}, EvaluationInterval: scraped.String()}
	for _, r := range recorded(t) {
		db, at := r.database(), r.trouble+soon
		test := promtoolTest{Name: r.name, Interval: scraped.String(), Input: r.forPromtool(at)}
		for i := range all {
			want := promtoolAlert{EvalTime: (earlier + at).String(), Name: all[i].Alert, Expected: []promtoolExpected{}}
			for _, f := range evaluate(t, e, db, &all[i], at) {
				if f.open {
					own := labels.NewBuilder(f.labels)
					for name, value := range f.rule.Labels {
						own.Set(name, value)
					}
					want.Expected = append(want.Expected, promtoolExpected{own.Labels().Map(), f.annotated(t)})
				}
			}
			test.Alerts = append(test.Alerts, want)
		}
		file.Tests = append(file.Tests, test)
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", to).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// forPromtool writes all values until a time, from the earliest on.
func (r *recording) forPromtool(until time.Duration) (all []promtoolSeries) {
	for _, s := range r.series {
		first, values := s.prolonged(int(r.trouble / scraped))
		missing := int(earlier/scraped) + first
		words := slices.Repeat([]string{"_"}, missing)
		for _, v := range values[:int(until/scraped)+1-first] {
			words = append(words, strconv.FormatFloat(v, 'g', -1, 64))
		}
		all = append(all, promtoolSeries{s.labels.String(), strings.Join(words, " ")})
	}
	return all
}
