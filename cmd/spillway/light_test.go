package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What is heavy belongs into a program of lab/contestants. The proxy has a file and metrics, with what
// metricsprom brings.
var (
	allowed = []string{"github.com/spillway-go/spillway", "github.com/alecthomas/kong", "golang.org/x", "go.yaml.in/yaml/v3",
		"github.com/prometheus", "github.com/beorn7/perks", "github.com/cespare/xxhash", "github.com/munnerz/goautoneg", "google.golang.org/protobuf"}
	heavy = []string{"github.com/spillway-go/spillway/examples", "github.com/spillway-go/spillway/lab/contestants", "testing"}
)

func TestTheCommandIsLight(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}} {{join .Imports \" \"}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	below := func(roots []string, path string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
	}
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if path == "" { // of the standard library
			continue
		}
		if !below(allowed, path) {
			t.Errorf("it links %s", path)
		}
		for imported := range strings.FieldsSeq(imports) {
			if below(heavy, imported) {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}
