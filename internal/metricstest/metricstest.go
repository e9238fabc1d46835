// Package metricstest helps the tests of packages that have a metrics.Source.
package metricstest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/metrics"
)

// Shown returns the values of a source by name and labels. The names are without the prefix. Shown
// also checks that a sample has as many labels as its metric, and that docs/operate/metrics.md has
// each metric.
func Shown(t testing.TB, s *metrics.Source, prefix string) map[string]float64 {
	t.Helper()
	page := documentation(t)
	for _, m := range s.Metrics() {
		if name := strings.ReplaceAll(m.Name, ".", "_"); !strings.Contains(page, "`"+name) {
			t.Errorf("%s is not in metrics.md", name)
		}
	}
	all := map[string]float64{}
	for _, one := range s.Read() {
		m := s.Metrics()[one.Metric]
		if len(one.Labels) != len(m.Labels) {
			t.Errorf("%s has the labels %q, want %q", m.Name, one.Labels, m.Labels)
		}
		all[strings.Join(append([]string{strings.TrimPrefix(m.Name, prefix)}, one.Labels...), " ")] = one.Value
	}
	return all
}

// documentation reads docs/operate/metrics.md of the repository around the folder of the test.
func documentation(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		var page []byte
		page, err = os.ReadFile(filepath.Join(dir, "docs", "operate", "metrics.md"))
		if err == nil {
			return string(page)
		}
		if parent := filepath.Dir(dir); parent != dir && errors.Is(err, fs.ErrNotExist) {
			dir, err = parent, nil
		}
	}
	t.Fatal(err)
	return ""
}
