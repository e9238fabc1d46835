package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/cmd/spillway/internal/simulate"
)

func TestAScenarioFromTheExampleToThePictures(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "burst.json"), filepath.Join(dir, "burst.html")
	code, example, stderr := command(t, "sim", "--example", "burst")
	if code != 0 || os.WriteFile(file, []byte(example), 0o600) != nil {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	code, stdout, stderr := command(t, "sim", file, "--out", page)
	if code != 0 || !strings.Contains(stdout, "unprotected") || !strings.Contains(stdout, "good/s") || !strings.Contains(stderr, "simulating limiter") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "Limits over time") {
		t.Errorf("the page: %d bytes, %v", len(text), err)
	}
	code, stdout, _ = command(t, "sim", file, "--json")
	var res simulate.Result
	if err := json.Unmarshal([]byte(stdout), &res); code != 0 || err != nil || res.Schema != simulate.Schema || len(res.Outcomes) != 4 {
		t.Errorf("exit code %d, %v, %+v", code, err, res)
	}
}

func TestScenariosAreListed(t *testing.T) {
	code, stdout, _ := command(t, "sim", "--list")
	if code != 0 || strings.Count(stdout, "\n") != len(simulate.Builtin()) || !strings.Contains(stdout, "retry-storm ") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}
