// Command modzip writes a module of a git tree into a folder that the go command can use as
// a proxy, with the zip that everybody will get once the tree is tagged:
//
//	modzip REPOSITORY TREE FOLDER MODULE VERSION PROXY
//
// FOLDER is that of the module in the repository, "." for the root.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) != 7 {
		fmt.Fprintln(os.Stderr, "usage: modzip REPOSITORY TREE FOLDER MODULE VERSION PROXY")
		os.Exit(2)
	}
	a := os.Args
	if err := write(a[1], a[2], a[3], module.Version{Path: a[4], Version: a[5]}, a[6]); err != nil {
		fmt.Fprintln(os.Stderr, "modzip:", err)
		os.Exit(1)
	}
}

func write(repository, tree, folder string, m module.Version, proxy string) error {
	dir := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(repository, folder, "go.mod"))
	if err != nil {
		return err
	}
	if folder = filepath.ToSlash(filepath.Clean(folder)); folder == "." {
		folder = "" // as CreateFromVCS wants it
	}
	name := func(suffix string) string { return filepath.Join(dir, m.Version+suffix) }
	zipped, err := os.Create(name(".zip"))
	if err != nil {
		return err
	}
	return errors.Join(
		zip.CreateFromVCS(zipped, m, repository, tree, folder), zipped.Close(),
		os.WriteFile(name(".mod"), mod, 0o666),
		os.WriteFile(name(".info"), []byte(fmt.Sprintf("{%q: %q}\n", "Version", m.Version)), 0o666),
		os.WriteFile(filepath.Join(dir, "list"), []byte(m.Version+"\n"), 0o666),
	)
}
