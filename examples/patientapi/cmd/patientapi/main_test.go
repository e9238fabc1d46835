package main

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/examples/patientapi/app"
)

func TestExitCodes(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel() // serve, and stop at once
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--help", 0, "openapi"},
		{"serve --help", 0, "--workers=20"},
		{"openapi", 0, `"openapi": "3.1.0"`},
		{"openapi --workers 3", 2, "--workers"},
		{"--addr 127.0.0.1:0 --store simulated", 0, "served 0 ok"},
		{"--pattern actors", 2, "want one of naive, workerpool, optimized, limiter"},
		{"--workers many", 2, "--workers"},
		{"--workers=-1", 2, "workers is -1"},
		{"--min-latency 2s --max-latency 1s", 2, "above max-latency"},
		{"--no-such-flag", 2, "--help"},
		{"word", 2, "--help"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(stopped, strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String()+stderr.String(), c.want) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", c.args, code, c.code, c.want, &stdout, &stderr)
		}
		if c.code == 2 && strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: not one line:\n%s", c.args, &stderr)
		}
	}
}

func TestFlagsAlsoComeFromTheEnvironment(t *testing.T) {
	t.Setenv("SPILLWAY_PATTERN", "actors")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), nil, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), `"actors"`) {
		t.Errorf("exit %d: %s", code, &stderr)
	}
	for f := range reflect.TypeFor[app.Command]().Fields() {
		if f.Tag.Get("env") == "" || f.Tag.Get("help") == "" {
			t.Errorf("%s cannot be set by the environment, or says nothing of itself", f.Name)
		}
	}
}

func TestDefaultsAreThoseOfTheFlags(t *testing.T) {
	var parsed app.Command
	parser, err := kong.New(&parsed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if parsed != app.Default() {
		t.Errorf("flags %+v\nDefault %+v", parsed, app.Default())
	}
}
