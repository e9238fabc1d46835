package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFlagOfTheProxyWinsOverItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := os.WriteFile(file, []byte("to: http://127.0.0.1:1\nmode: dryrun\nroutes: [{match: GET /a}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--file " + file + " --check":                        "fine: to http://127.0.0.1:1, routes: 1\n",
		"--file " + file + " --to h2c://127.0.0.1:2 --check": "fine: to h2c://127.0.0.1:2, routes: 1\n",
		"--check":                  "which service?",
		"--to 127.0.0.1:1 --check": "--to: ",
		"--to http://127.0.0.1:1 --mode on --check":                   `unknown mode "on"`,
		"--to http://127.0.0.1:1 --deadline=-1s --check":              "--deadline: a time cannot be negative",
		"--to http://127.0.0.1:1 --listen 8080 --check":               "listen: ",
		"--to http://127.0.0.1:1 --listen 127.0.0.1:0 --admin nobody": "admin: ",
	} {
		code, stdout, stderr := command(t, append([]string{"proxy"}, strings.Fields(line)...)...)
		if fine := strings.HasPrefix(want, "fine"); !strings.Contains(stdout+stderr, want) || fine != (code == 0) {
			t.Errorf("%s: exit code %d, %s%s\nwant %s", line, code, stdout, stderr, want)
		}
	}
}
