package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// find returns the tests of the soak below the root of fsys: functions TestSoak… in files
// that need the tag soak. A file that needs !race as well runs without the race detector.
func find(fsys fs.FS) ([]item, error) {
	var items []item
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() && name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		tagged, race := built(file)
		if !tagged {
			return nil
		}
		folder := path.Dir(name)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			if !strings.HasPrefix(f.Name.Name, "TestSoak") {
				return fmt.Errorf("%s: %s is in neither the gate nor the soak: call it TestSoak…", name, f.Name.Name)
			}
			args := []string{"go", "test", "-json", "-count=1", "-vet=off", "-timeout=" + longest, "-tags=soak", "-run=^" + f.Name.Name + "$"}
			if race {
				args = append(args, "-race")
			}
			items = append(items, item{
				Test: true,
				Name: short(folder, f.Name.Name),
				Args: append(args, "./"+folder),
				Asks: strings.TrimSuffix(new(doc.Package).Synopsis(strings.TrimPrefix(f.Doc.Text(), f.Name.Name+" ")), "."),
			})
		}
		return nil
	})
	return items, err
}

// built reports whether a file needs the tag of the soak, and whether it is built with
// the race detector.
func built(file *ast.File) (tagged, race bool) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				continue
			}
			with := func(soak, race bool) bool {
				return expr.Eval(func(tag string) bool {
					switch tag {
					case "soak":
						return soak
					case "race":
						return race
					}
					return true
				})
			}
			return !with(false, true) && !with(false, false), with(true, true)
		}
	}
	return false, false
}
