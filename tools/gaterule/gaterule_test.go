package gaterule

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestTheGateDependsOnTheCodeAlone(t *testing.T) {
	found, err := inspect(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Errorf("%s:%d: %s", v.file, v.line, v.what)
	}
	if t.Failed() {
		t.Log("wait for the event with internal/await, make time virtual with testing/synctest, or move what is about real time to the soak (CONTRIBUTING.md, Tests)")
	}
}

// inspect parses the test files below the root of fsys, and the packages that only tests
// use, and returns what breaks the rule. Files of the soak are left out.
func inspect(fsys fs.FS) ([]violation, error) {
	packages := map[string]files{} // by folder and name: the functions of a package know each other
	positions := token.NewFileSet()
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() && name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
			return fs.SkipDir
		}
		if entry.IsDir() || !governed(name) {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(positions, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ofSoak(file) {
			return err
		}
		key := path.Dir(name) + " " + file.Name.Name
		if packages[key] == nil {
			packages[key] = files{}
		}
		packages[key][name] = file
		return nil
	})
	if err != nil {
		return nil, err
	}
	var found []violation
	for _, key := range slices.Sorted(maps.Keys(packages)) {
		pkg := packages[key]
		virtual, constants := virtualIn(pkg), constantsOf(pkg)
		for _, name := range slices.Sorted(maps.Keys(pkg)) {
			look(pkg[name], virtual, constants, func(at token.Pos, what string) {
				found = append(found, violation{name, positions.Position(at).Line, what})
			})
		}
	}
	return found, nil
}

// files are those of one package, by name.
type files map[string]*ast.File

type violation struct {
	file string
	line int
	what string
}

// governed reports whether the rule is about a file: tests, and the packages of helpers
// and suites, whose folders' names end in "test".
func governed(name string) bool {
	return strings.HasSuffix(name, "_test.go") ||
		path.Ext(name) == ".go" && strings.HasSuffix(path.Base(path.Dir(name)), "test")
}

// ofSoak reports whether a file is built only with the tag of the soak.
func ofSoak(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err == nil && slices.Contains(strings.Fields(expr.String()), "soak") &&
				!expr.Eval(func(tag string) bool { return tag != "soak" }) {
				return true
			}
		}
	}
	return false
}
