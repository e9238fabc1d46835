package layers

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// small breaks no rule: two layers, an adapter and a service.
func small() (fstest.MapFS, [][]string) {
	file := func(source string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(source)} }
	return fstest.MapFS{
		"go.mod":                    file("module " + self + "\n\ngo 1.26.0\n"),
		"words.go":                  file("// Package spillway is there.\npackage spillway\n"),
		"limiter/limiter.go":        file("// Package limiter is there.\npackage limiter\nimport (\n\"time\"\n\"" + self + "\"\n)\n"),
		"limiter/x_test.go":         file("package limiter_test\nimport \"" + self + "/limiter\"\n"),
		"internal/gate/g.go":        file("// Package gate is there.\npackage gate\n"),
		"metricsprom/go.mod":        file("module m\nrequire x v1.0.0\n"),
		"metricsprom/m.go":          file("// Package metricsprom is there.\npackage metricsprom\nimport _ \"github.com/prometheus/client_golang/prometheus\"\n"),
		"jobqueue/outbox/go.mod":    file("module o\n"),
		"jobqueue/outbox/o.go":      file("// Package outbox is there.\npackage outbox\n"),
		"jobqueue/outbox/o_test.go": file("package outbox\nimport _ \"example.com/driver\"\n"),
		"service/go.mod":            file("module s\n"),
		"service/main.go":           file("// Command service is there.\npackage main\nimport _ \"example.com/anything\"\n"),
		"limiter/testdata/a.x":      file("not Go"),
	}, [][]string{{".", "internal/gate"}, {"limiter"}, {"metricsprom", "jobqueue/outbox"}, {"service"}}
}

func TestASmallModuleWithoutViolationsPasses(t *testing.T) {
	fsys, layers := small()
	if got, err := inspect(fsys, layers); err != nil || len(got) > 0 {
		t.Fatalf("violations %q, error %v", got, err)
	}
}

func TestEachPlantedViolationIsFound(t *testing.T) {
	planted := map[string]struct{ name, source, want string }{
		"upward import":            {"up.go", "package spillway\nimport _ \"" + self + "/limiter\"\n", "imports limiter, which is not in a lower layer"},
		"sideways import":          {"side.go", "package spillway\nimport _ \"" + self + "/internal/gate\"\n", "imports internal/gate, which is not"},
		"upward import of a test":  {"up_test.go", "package spillway_test\nimport _ \"" + self + "/limiter\"\n", "up_test.go: imports limiter"},
		"third party in the core":  {"limiter/y.go", "package limiter\nimport _ \"example.com/x\"\n", "standard library only"},
		"third party in its tests": {"limiter/y_test.go", "package limiter\nimport _ \"example.com/x\"\n", "standard library only"},
		"internals used outside":   {"service/i.go", "package main\nimport _ \"" + self + "/internal/gate\"\n", "public packages only"},
		"adapter of two things":    {"metricsprom/n.go", "package metricsprom\nimport _ \"example.com/x\"\n", "adapts github.com/prometheus/ and nothing else"},
		"a driver in the code":     {"jobqueue/outbox/d.go", "package outbox\nimport _ \"example.com/driver\"\n", "third-party code in its tests only"},
		"package without a layer":  {"loadgen/l.go", "// Package loadgen is there.\npackage loadgen\n", "package loadgen has no layer"},
		"package without comment":  {"words.go", "package spillway\n", "package . has no package comment"},
		"requirement":              {"go.mod", "module " + self + "\n\nrequire (\n\tx v1.0.0\n)\n", "requires nothing"},
		"layer without a package":  {"internal/gate/g.go", "", "internal/gate has a layer and no files"},
	}
	for _, what := range slices.Sorted(maps.Keys(planted)) {
		t.Run(what, func(t *testing.T) {
			fsys, layers := small()
			p := planted[what]
			fsys[p.name] = &fstest.MapFile{Data: []byte(p.source)}
			if p.source == "" {
				delete(fsys, p.name)
			}
			got, err := inspect(fsys, layers)
			if err != nil || len(got) != 1 || !strings.Contains(got[0], p.want) {
				t.Fatalf("violations %q, error %v; want one with %q", got, err, p.want)
			}
		})
	}
}

func TestAPackageIsOnOneRowOnly(t *testing.T) {
	fsys, layers := small()
	got, err := inspect(fsys, append(layers, []string{"limiter"}))
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "package limiter is in rows 2 and 5") {
		t.Fatalf("violations %q, error %v; want one with the rows of limiter", got, err)
	}
}

func TestTestsOfOtherModulesUseWhatIsForTests(t *testing.T) {
	for name, want := range map[string]int{"service/w_test.go": 0, "service/helptest/h.go": 0, "service/w.go": 1} {
		fsys, layers := small()
		fsys["internal/await/await.go"] = &fstest.MapFile{Data: []byte("// Package await is there.\npackage await\n")}
		layers = append([][]string{{"internal/await"}}, append(layers, []string{"service/helptest"})...)
		fsys["service/helptest/doc.go"] = &fstest.MapFile{Data: []byte("// Package helptest is there.\npackage helptest\n")}
		fsys[name] = &fstest.MapFile{Data: []byte("package x\nimport _ \"" + self + "/internal/await\"\n")}
		if got, err := inspect(fsys, layers); err != nil || len(got) != want {
			t.Errorf("%s: violations %q, error %v; want %d", name, got, err, want)
		}
	}
}

func TestABrokenFileIsAnError(t *testing.T) {
	fsys, layers := small()
	fsys["words.go"] = &fstest.MapFile{Data: []byte("pack age")}
	if got, err := inspect(fsys, layers); err == nil {
		t.Fatalf("no error, violations %q", got)
	}
}
