package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers lists the folders of all packages, each once, the lowest layer first. Packages
// on one line do not import each other. lab/* is every experiment that has no other place.
var layers = [][]string{
	{"examples/patientapi/internal/assert", "examples/patientapi/internal/require", "internal/await", "internal/carry", "internal/clock", "tools/gaterule", "internal/inside", "internal/logtest", "internal/names", "internal/pages", "internal/soak", "route/internal/stdjson", "route/internal/syntax"},
	{".", "histogram", "clusterlimit/internal/budget", "internal/ablation", "tools/api", "internal/fair", "tools/layers", "tools/soak", "tools/testreport", "tools/pinned/modzip", "tools/pinned/platforms", "jobqueue/internal/ends", "jobqueue/internal/local", "retrybudget", "route/internal/shape"},
	{"internal/priority", "internal/refusal", "limit", "load/loadgen", "objectpool", "route/internal/encode", "route/internal/openapi", "route/internal/wire"},
	{"internal/handoff", "internal/laws", "internal/places", "internal/processors"},
	{"internal/gate"},
	{"limiter"},
	{"fanout", "internal/debugpage", "limiter/semaphore", "shedlog", "internal/sim", "workerpool"},
	{"metrics", "route"},
	{"admissionhttp", "internal/metricstest"},
	{"admissiongrpc", "admissionhttp/client", "examples/background", "examples/batch", "examples/migrate", "jobqueue", "jobqueue/embedded", "metricsotel", "metricsprom", "routegin", "examples/frameworks/routeyaml"},
	{"clusterlimit", "jobqueue/internal/engine", "jobqueue/internal/jobqueuetest"},
	{"examples/frameworks/grpc", "examples/frameworks/internal/serve", "examples/frameworks/semaphore", "jobqueue/jetstream", "jobqueue/memory"},
	{"examples/frameworks/internal/exercise", "jobqueue/cmd/queue", "jobqueue/internal/proof", "jobqueue/outbox", "jobqueue/periodic"},
	{"examples/frameworks/chi", "examples/frameworks/complete", "examples/frameworks/echo", "examples/frameworks/gin", "examples/frameworks/nethttp", "examples/frameworks/proxy"},
	{"load", "load/numbers", "load/usage"},
	{"load/chart", "load/judge"},
	{"load/compare", "load/document"},
	{"load/capacity", "lab/internal/browsertest"},
	{"examples/patientapi/checks/deploy/internal/prune", "examples/patientapi/internal/discreet", "examples/patientapi/internal/gauge", "examples/patientapi/internal/migrate", "examples/patientapi/internal/sqlstate", "examples/patientapi/postgres/db", "examples/patientapi/postgres/provision", "lab/bubble", "lab/burn", "lab/burst/specimen", "lab/contestant", "lab/contestants", "lab/contestants/fan/specimen", "deploy/prometheus/checks", "lab/oncall", "lab/patterns/specimen", "lab/results", "lab/contestants/web/specimen"},
	{"examples/patientapi", "examples/patientapi/access", "examples/patientapi/audit", "lab/advice", "lab/ledger", "lab/turns"},
	{"examples/patientapi/internal/accesstest", "examples/patientapi/internal/audittest", "examples/patientapi/internal/cachetest", "examples/patientapi/internal/packed", "examples/patientapi/internal/population", "examples/patientapi/internal/postgrestest", "examples/patientapi/internal/redistest", "examples/patientapi/internal/storetest", "examples/patientapi/token", "lab/callgrind", "lab/ledger/ledgertest"},
	{"examples/patientapi/cache/memory", "examples/patientapi/cache/redis", "examples/patientapi/directory"},
	{"examples/patientapi/audit/postgres", "examples/patientapi/audit/sqlite", "examples/patientapi/front", "examples/patientapi/postgres", "examples/patientapi/simulated", "examples/patientapi/sqlite", "lab/report"},
	{"examples/patientapi/patterns", "examples/patientapi/tracing", "lab/experiment"},
	{"examples/patientapi/export", "lab/internal/labtest"},
	{"lab/bouts", "lab/postgres", "examples/patientapi/checks/conformance/client", "examples/patientapi/fhir", "examples/patientapi/httpapi", "lab/service"},
	{"examples/patientapi/app", "lab/*"},
	{"examples/patientapi/cmd/patientapi", "examples/patientapi/checks/conformance", "examples/patientapi/checks/conformance/r4", "examples/patientapi/checks/deploy", "cmd/spillway/internal/demo", "cmd/spillway/internal/proxy", "cmd/spillway/internal/simulate", "lab/contestants/fan", "lab/contestants/ladder", "lab/contestants/peers", "lab/contestants/pools", "lab/contestants/record", "lab/contestants/troubles", "lab/contestants/virtual", "lab/contestants/web", "lab/shapes", "lab/contestants/durable"},
	{"cmd/spillway", "lab/contestants/audited", "lab/contestants/patient"},
}

// adapters are modules around one third-party library, with the modules allowed.
var adapters = map[string]string{
	"admissiongrpc": "google.golang.org/",
	"clusterlimit":  "github.com/nats-io/",
	"metricsotel":   "go.opentelemetry.io/",
	"metricsprom":   "github.com/prometheus/",
	"routegin":      "github.com/gin-gonic/",
}

// plain are modules whose third-party requirements are for their tests only.
var plain = map[string]bool{"jobqueue/outbox": true}

// command is the module that nobody imports: what the command plays is the root module's own.
const command = "cmd/spillway"

// recorder records what the debug page sees of a limiter, for the page's tests.
const recorder = "lab/contestants/troubles"

// forTests are the internal packages of the root module that the tests of all modules use.
var forTests = map[string]bool{"internal/await": true, "internal/logtest": true, "internal/metricstest": true, "internal/pages": true, "internal/sim": true, "internal/soak": true}

// inTests reports whether a file is a test, or in a folder of helpers for tests.
func inTests(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test")
}

const self = "github.com/spillway-go/spillway"

func TestNoPackageBreaksARule(t *testing.T) {
	violations, err := inspect(os.DirFS("../.."), layers)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range violations {
		t.Error(c)
	}
}

// inspect reads the Go files and go.mod files below the root of fsys and returns
// the violations. It parses the files itself, because the test cache notices
// changes of files that the test opened, not of those that a child process read.
func inspect(fsys fs.FS, layers [][]string) (violations []string, err error) {
	violation := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	layer := map[string]int{}
	for i, row := range layers {
		for _, dir := range row {
			if first, twice := layer[dir]; twice {
				violation("package %s is in rows %d and %d of the table of tools/layers: it has one place", dir, first+1, i+1)
			}
			layer[dir] = i
		}
	}
	layerOf := func(dir string) (int, bool) {
		at, known := layer[dir]
		if !known {
			at, known = layer[path.Dir(dir)+"/*"]
		}
		return at, known
	}
	commented := map[string]bool{} // every package found: whether it has a comment
	err = eachGoFile(fsys, func(name string, source []byte) error {
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir, module := path.Dir(name), moduleOf(fsys, path.Dir(name))
		commented[dir] = commented[dir] || file.Doc != nil && !strings.HasSuffix(name, "_test.go")
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			to, ours := strings.CutPrefix(imported+"/", self+"/")
			to = path.Clean(to) // "." for the root package
			first, _, _ := strings.Cut(imported, "/")
			switch {
			case ours && to == dir: // an external test of its own package
			case ours:
				high, known := layerOf(dir)
				if low, ok := layerOf(to); known && ok && low >= high {
					violation("%s: imports %s, which is not in a lower layer", name, to)
				}
				if module != "." && strings.HasPrefix(to, "internal/") && !(forTests[to] && inTests(name)) && !(module == command && to == "internal/sim") && !(dir == recorder && to == "internal/inside") {
					violation("%s: imports %s; other modules use public packages only", name, to)
				}
			case !strings.Contains(first, "."): // standard library
			case module == ".":
				violation("%s: imports %s; the root module uses the standard library only", name, imported)
			case plain[module] && !inTests(name):
				violation("%s: imports %s; module %s uses third-party code in its tests only", name, imported, module)
			case adapters[module] != "" && !strings.HasPrefix(imported, adapters[module]):
				violation("%s: imports %s; module %s adapts %s and nothing else", name, imported, module, adapters[module])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, dir := range slices.Sorted(maps.Keys(commented)) {
		if _, ok := layerOf(dir); !ok {
			violation("package %s has no layer: give it a place in the table of tools/layers", dir)
		}
		if !commented[dir] {
			violation("package %s has no package comment", dir)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(layer)) {
		if _, ok := commented[dir]; !ok && path.Base(dir) != "*" {
			violation("package %s has a layer and no files: take it out of the table of tools/layers", dir)
		}
	}
	mod, err := fs.ReadFile(fsys, "go.mod")
	for line := range strings.Lines(string(mod)) {
		if strings.HasPrefix(line, "require") {
			violation("go.mod: the root module requires nothing")
		}
	}
	return violations, err
}

// eachGoFile calls visit for every Go file below the root of fsys that the go
// command would read.
func eachGoFile(fsys fs.FS, visit func(name string, source []byte) error) error {
	return fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := path.Base(name); entry.IsDir() && name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return visit(name, source)
	})
}

// moduleOf returns the folder of the module that dir belongs to.
func moduleOf(fsys fs.FS, dir string) string {
	for dir != "." {
		if _, err := fs.Stat(fsys, path.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = path.Dir(dir)
	}
	return dir
}
