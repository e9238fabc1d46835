package metricsprom

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/workerpool"
)

// exposition returns the metric names on /metrics of a program with all collectors, in Prometheus
// form, with the labels of each metric.
func exposition(t *testing.T) map[string][]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		New(metrics.Limiter(newLimiter(limiter.Config{Name: "http"}))),
		New(metrics.Pool(newPool(workerpool.Config{Name: "mail"}))),
		keyed(t, metrics.KeyedConfig{Name: "tenants", Family: family(t, "a")}),
	)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/metrics", nil))
	names := map[string][]string{}
	label := regexp.MustCompile(`(\w+)="`)
	for line := range strings.Lines(w.Body.String()) {
		name, rest, ok := strings.Cut(line, "{")
		if !ok || line[0] == '#' {
			continue
		}
		for _, l := range label.FindAllStringSubmatch(rest, -1) {
			if !slices.Contains(names[name], l[1]) {
				names[name] = append(names[name], l[1])
			}
		}
	}
	if len(names) < 25 {
		t.Fatalf("only %d names: %s", len(names), w.Body)
	}
	return names
}

var (
	used     = regexp.MustCompile(`\b(spillway_\w+)(\{[^}]*\})?`)
	matchers = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	groups   = regexp.MustCompile(`by \(([^)]*)\)`)
)

// verify checks that a text names only shown metrics. Its queries may use only labels that the
// metrics have or that a scrape adds. It returns the names.
func verify(t *testing.T, where, text string, shown map[string][]string) (names []string) {
	t.Helper()
	var labels []string
	for _, m := range used.FindAllStringSubmatch(text, -1) {
		name := m[1]
		names = append(names, name)
		of, ok := shown[name]
		if !ok && strings.HasSuffix(where, ".md") { // may name a whole histogram
			of, ok = shown[name+"_bucket"]
		}
		if !ok {
			t.Errorf("%s has %s, which nothing shows", where, name)
			continue
		}
		of = append(slices.Clone(of), "job", "instance", "namespace", "pod")
		labels = append(labels, of...)
		for _, l := range matchers.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(of, l[1]) {
				t.Errorf("%s: %s has no label %s", where, m[0], l[1])
			}
		}
	}
	for _, m := range groups.FindAllStringSubmatch(text, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if l = strings.TrimSpace(l); !slices.Contains(labels, l) && !strings.HasPrefix(l, "<<") {
				t.Errorf("%s: %s: no label %s", where, m[0], l)
			}
		}
	}
	return names
}

func TestTheDashboardShowsWhatIsThereAndAllOfIt(t *testing.T) {
	shown := exposition(t)
	var dashboard struct {
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	check(t, json.Unmarshal(Dashboard(), &dashboard))
	var variables, names []string
	for _, v := range dashboard.Templating.List {
		variables = append(variables, v.Name)
		verify(t, "variable "+v.Name, fmt.Sprint(v.Query), shown)
	}
	variable := regexp.MustCompile(`\$(\w+)`)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("%s has the id %d of another panel", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			names = append(names, verify(t, p.Title, target.Expr, shown)...)
			for _, v := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if v[1] != "__rate_interval" && !slices.Contains(variables, v[1]) {
					t.Errorf("%s: no variable %s", p.Title, v[1])
				}
			}
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if before := taken[[2]int{x, y}]; before != "" || x >= 24 {
					t.Fatalf("%s is where %s is", p.Title, before)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	for name := range shown {
		if !slices.Contains(names, name) && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			t.Errorf("%s is in no panel", name)
		}
	}
}

func TestTheFilesToDeployHaveMetricsThatAreThere(t *testing.T) {
	shown := exposition(t)
	var files []string
	for _, folder := range []string{"kubernetes", "prometheus"} {
		found := must(filepath.Glob("../deploy/" + folder + "/*.yaml"))
		files = append(files, found...)
	}
	if len(files) < 5 {
		t.Errorf("only %q", files)
	}
	for _, file := range files {
		text := must(os.ReadFile(file))
		if names := verify(t, file, string(text), shown); len(names) == 0 {
			t.Errorf("%s has no metric", file)
		}
	}
}

func TestTheDocumentationHasEveryMetricAndNoOther(t *testing.T) {
	shown := exposition(t)
	text := must(os.ReadFile("../docs/operate/metrics.md"))
	own, _, _ := strings.Cut(string(text), "\n## Other sources\n") // tests of jobqueue and clusterlimit check the rest
	verify(t, "metrics.md", own, shown)
	scaling := must(os.ReadFile("../docs/operate/autoscaling.md"))
	verify(t, "autoscaling.md", string(scaling), shown)
	rows := 0
	kinds := map[metrics.Kind]string{metrics.Counter: "counter", metrics.UpDownCounter: "updowncounter", metrics.Gauge: "gauge", metrics.Histogram: "histogram"}
	ofLimiters := metrics.Limiter(newLimiter(limiter.Config{})).Metrics()
	for _, m := range append(ofLimiters, metrics.Pool(newPool(workerpool.Config{})).Metrics()...) {
		labels := ""
		for _, l := range m.Labels {
			if l != "key" {
				labels += "`" + l + "`, "
			}
		}
		want := fmt.Sprintf("| `%s` | `%s` | %s | %s", m.Name, nameOf(m), kinds[m.Kind], strings.TrimSuffix(labels, ", "))
		if !strings.Contains(string(text), want) {
			t.Errorf("metrics.md has no row %s", want)
		}
		rows++
	}
	if n := strings.Count(string(text), "| `spillway."); n != rows {
		t.Errorf("metrics.md has %d rows for %d metrics", n, rows)
	}
}
