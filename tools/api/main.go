// Command api lists what the packages for users export, one line each, in
// docs/api/current.txt, so that a change of the API is seen in a review:
//
//	go run ./tools/api            write the list
//	go run ./tools/api -check     fail if the list is not up to date, or if a change of it
//	                                 breaks a package on its way to v1 unannounced
//
// The list of the last release is docs/api/released.txt.
// listing.go makes the lines and breaking.go compares them.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const (
	self         = "github.com/spillway-go/spillway"
	currentFile  = "docs/api/current.txt"
	releasedFile = "docs/api/released.txt"
	changesFile  = "CHANGELOG.md"
)

func main() {
	checking := flag.Bool("check", false, "write nothing: fail if the list is not up to date or breaks a promise")
	flag.Parse()
	if err := run(*checking); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(checking bool) error {
	now, err := exported()
	if err != nil {
		return err
	}
	if !checking {
		return os.WriteFile(currentFile, []byte(strings.Join(now, "\n")+"\n"), 0o644)
	}
	listed, err := lines(currentFile)
	if err != nil {
		return err
	}
	for _, line := range missing(listed, now) {
		fmt.Fprintln(os.Stderr, "-", line)
	}
	for _, line := range missing(now, listed) {
		fmt.Fprintln(os.Stderr, "+", line)
	}
	if !slices.Equal(listed, now) {
		return fmt.Errorf("%s is not up to date: run make api and commit it", currentFile)
	}
	released, err := lines(releasedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is promised before the first release
	}
	changes, err2 := os.ReadFile(changesFile)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if broken := unannounced(released, now, string(changes)); len(broken) > 0 {
		return fmt.Errorf("since the last release these changed or are gone:\n\t%s\nkeep them, or name each below \"### Breaking\" in the first section of %s, with what to write instead",
			strings.Join(broken, "\n\t"), changesFile)
	}
	return nil
}

func lines(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	return slices.Collect(strings.SplitSeq(strings.TrimSpace(string(text)), "\n")), err
}

// exported is the list of all packages for users, sorted.
func exported() ([]string, error) {
	modules, err := lines("go.work")
	if err != nil {
		return nil, fmt.Errorf("run this in the root of the repository: %w", err)
	}
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Name,Export,DepOnly"}
	for _, line := range modules {
		if folder, used := strings.CutPrefix(line, "\t"); used && forUsers(folder) {
			args = append(args, folder+"/...")
		}
	}
	command := exec.Command("go", args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	files := map[string]string{} // with the types of a package, by its path
	var paths []string
	for packages := json.NewDecoder(strings.NewReader(string(out))); packages.More(); {
		var p struct {
			ImportPath, Name, Export string
			DepOnly                  bool
		}
		if err := packages.Decode(&p); err != nil {
			return nil, err
		}
		files[p.ImportPath] = p.Export
		if !p.DepOnly && p.Name != "main" && forUsers(p.ImportPath) {
			paths = append(paths, p.ImportPath)
		}
	}
	types := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	var all []string
	for _, path := range paths {
		pkg, err := types.Import(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, listing(nameOf(path), pkg)...)
	}
	slices.Sort(all)
	return all, nil
}

// forUsers reports whether packages in that folder are made to be imported by others.
func forUsers(path string) bool {
	return !slices.ContainsFunc(strings.Split(strings.TrimPrefix(path, self), "/"), func(part string) bool {
		return part == "internal" || part == "examples" || part == "lab" || part == "cmd" || part == "load" || part == "tools"
	})
}

// nameOf is the path of a package without that of the project: admissionhttp/client.
func nameOf(path string) string {
	if path == self {
		return "spillway"
	}
	return strings.TrimPrefix(path, self+"/")
}
