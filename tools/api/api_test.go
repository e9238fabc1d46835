package main

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const source = `package p

import "context"

type Mode int

const (
	Enforce Mode = iota
	DryRun
	secret
)

const Word = "text"

var ErrGone error

type Config[T any] struct {
	New    func(ctx context.Context, of string) (made *T, err error)
	hidden int
}

func (c Config[T]) Value() (v T)      { return v }
func (c *Config[T]) Set(key string, values ...T) {}
func (c *Config[T]) quiet()           {}

type base struct{}

func (base) Promoted() {}

type Wide struct{ base }

type Law interface {
	Limit() int
	End(seq uint64, took float64)
}

type Old = Config[int]

func Do[T any, L Law](ctx context.Context, law L, fn func(context.Context) (T, error)) (T, error) {
	panic(0)
}

func unseen() {}
`

func TestEveryNameIsALine(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output() // a test that was built with -trimpath does not know
	if err != nil {
		t.Fatal(err)
	}
	build.Default.GOROOT = strings.TrimSpace(string(root))
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := (&types.Config{Importer: importer.ForCompiler(files, "source", nil)}).Check("p", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(`
p.Config type[T any] struct
p.Config.New field func(context.Context, string) (*T, error)
p.Config.Set method (*Config) func(string, ...T)
p.Config.Value method (Config) func() T
p.Do func[T any, L Law](context.Context, L, func(context.Context) (T, error)) (T, error)
p.DryRun const Mode = 1
p.Enforce const Mode = 0
p.ErrGone var error
p.Law type interface{End(uint64, float64); Limit() int}
p.Mode type int
p.Old type = Config[int]
p.Wide type struct
p.Wide.Promoted method (Wide) func()
p.Word const untyped string = "text"
`), "\n")
	got := listing("p", pkg)
	for _, line := range missing(want, got) {
		t.Error("missing:", line)
	}
	for _, line := range missing(got, want) {
		t.Error("not wanted:", line)
	}
}

func TestWhatBreaksAStablePackageIsAnnounced(t *testing.T) {
	released := []string{
		"limit.New func()", "limiter.Config struct", "limiter.Config.MaxWait field time.Duration", "limiter.New func(Config) *Limiter", "limiterx.New func()", "workerpool.Do func()",
	}
	now := []string{"limiter.Added func()", "limiter.Config struct", "limiter.New func(Config) (*Limiter, error)", "workerpool.Do func()"}
	changelog := "# Changelog\n\n## Unreleased\n\n### Breaking\n\n- `limiter.New` returns an error.\n\n### Other\n\n- `limiter.Config.MaxWait`\n\n## v0.1.0\n\n### Breaking\n\n- `limiter.Config.MaxWait`\n"
	if got := unannounced(released, now, changelog); !slices.Equal(got, []string{"limiter.Config.MaxWait field time.Duration"}) {
		t.Errorf("unannounced: %q", got)
	}
	if got := unannounced(released, now, "# Changelog\n"); len(got) != 2 {
		t.Errorf("without a changelog: %q", got)
	}
	if got := unannounced(released, released, ""); len(got) != 0 {
		t.Errorf("nothing changed: %q", got)
	}
}

func TestWhatIsForUsers(t *testing.T) {
	for path, want := range map[string]bool{
		self: true, self + "/admissionhttp/client": true, self + "/internal/gate": false, self + "/examples/batch": false,
		self + "/lab/report": false, self + "/load/judge": false, self + "/load/loadgen": false, self + "/tools/layers": false, ".": true, "./lab": false, "./lab/contestants": false, "./metricsprom": true, "./examples/frameworks": false,
	} {
		if forUsers(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
