package main

import (
	"bytes"
	"context"
	"reflect"
	"slices"
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
		{"--pattern actors", 2, "want one of naive, workerpool, optimized, limiter, adaptive"},
		{"--workers many", 2, "--workers"},
		{"--mode maybe", 2, "--mode"},
		{"--mode dryrun --pattern naive", 2, "mode is dryrun"},
		{"--addr 127.0.0.1:0 --store simulated --mode dry-run", 0, "served 0 ok"},
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
	everyFlag(t, reflect.TypeFor[app.Command]())
}

func everyFlag(t *testing.T, group reflect.Type) {
	for f := range group.Fields() {
		if _, isGroup := f.Tag.Lookup("embed"); isGroup {
			everyFlag(t, f.Type)
		} else if f.Tag.Get("env") == "" || f.Tag.Get("help") == "" {
			t.Errorf("%s of %s cannot be set by the environment, or has no help", f.Name, group)
		}
	}
}

// The names are those that scripts and environments use.
func TestFlagNamesStay(t *testing.T) {
	var parsed app.Command
	parser, err := kong.New(&parsed, kong.Name("patientapi"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range parser.Model.Flags {
		names = append(names, f.Name+" "+strings.Join(f.Envs, " "))
	}
	slices.Sort(names)
	want := []string{
		"addr SPILLWAY_ADDR", "admin-addr SPILLWAY_ADMIN_ADDR", "admin-public SPILLWAY_ADMIN_PUBLIC", "bulk-deadline SPILLWAY_BULK_DEADLINE",
		"cache SPILLWAY_CACHE", "cache-password-file SPILLWAY_CACHE_PASSWORD_FILE", "cache-timeout SPILLWAY_CACHE_TIMEOUT", "cache-ttl SPILLWAY_CACHE_TTL",
		"critical-deadline SPILLWAY_CRITICAL_DEADLINE", "db SPILLWAY_DB", "drain-delay SPILLWAY_DRAIN_DELAY", "error-rate SPILLWAY_ERROR_RATE", "help ", "json SPILLWAY_JSON",
		"max-connections SPILLWAY_MAX_CONNECTIONS", "max-latency SPILLWAY_MAX_LATENCY", "min-latency SPILLWAY_MIN_LATENCY",
		"mode SPILLWAY_MODE", "normal-deadline SPILLWAY_NORMAL_DEADLINE",
		"patients SPILLWAY_PATIENTS", "pattern SPILLWAY_PATTERN", "queue-size SPILLWAY_QUEUE_SIZE", "queue-wait SPILLWAY_QUEUE_WAIT",
		"readers SPILLWAY_READERS", "seed SPILLWAY_SEED", "shutdown-timeout SPILLWAY_SHUTDOWN_TIMEOUT", "slow-start SPILLWAY_SLOW_START", "store SPILLWAY_STORE",
		"timeout SPILLWAY_TIMEOUT", "workers SPILLWAY_WORKERS",
	}
	if !slices.Equal(names, want) {
		t.Errorf("\n got %q\nwant %q", names, want)
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
