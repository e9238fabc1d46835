// Command platforms checks the types of packages, their tests included, for other systems
// than this one:
//
//	platforms FOLDER GOOS/GOARCH[,...] PATTERN...
//
// It compiles nothing, the standard library least of all, and so takes seconds where go vet
// takes minutes. What vet finds beyond types it finds on this system.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: platforms FOLDER GOOS/GOARCH[,...] PATTERN...")
		os.Exit(2)
	}
	folder, err := filepath.Abs(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "platforms:", err)
		os.Exit(2)
	}
	sound := true
	for platform := range strings.SplitSeq(os.Args[2], ",") {
		faults, err := check(folder, platform, os.Args[3:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "platforms: %s: %v\n", platform, err)
			os.Exit(1)
		}
		for _, fault := range faults {
			fmt.Fprintf(os.Stderr, "%s: %s\n", platform, fault)
			sound = false
		}
	}
	if !sound {
		os.Exit(1)
	}
}

// check returns what is wrong with the packages on the platform.
func check(folder, platform string, patterns []string) (faults []string, err error) {
	system, processor, ok := strings.Cut(platform, "/")
	if !ok {
		return nil, fmt.Errorf("want GOOS/GOARCH")
	}
	own := folder + string(filepath.Separator)
	found, err := packages.Load(&packages.Config{
		Mode:  packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedImports | packages.NeedDeps,
		Dir:   folder,
		Tests: true,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOWORK="),
		ParseFile: func(files *token.FileSet, name string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, own) {
				withoutBodies(file)
			}
			return file, err
		},
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no packages in %s", strings.Join(patterns, " "))
	}
	packages.Visit(found, nil, func(p *packages.Package) {
		if len(p.GoFiles) == 0 || !strings.HasPrefix(p.GoFiles[0], own) {
			return // a package without bodies imports what it does not use
		}
		for _, e := range p.Errors {
			if fault := e.Error(); !slices.Contains(faults, fault) { // a package with tests is there twice
				faults = append(faults, fault)
			}
		}
	})
	return faults, nil
}

// withoutBodies drops what a user of a package does not see.
func withoutBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
