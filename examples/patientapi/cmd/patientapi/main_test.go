package main

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/examples/patientapi/app"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
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
		{"token", 0, "eyJ"},
		{"token --role patient --patient P000007 --scope patient/Patient.r --ttl 1m", 0, "eyJ"},
		{"token --scope bogus", 2, "user/Patient.rs, patient/*.read"},                             // was a token that opens nothing
		{"token --scope system/Patient.rs", 2, "role clinician: it may do what user/*.rs allows"}, // was taken, as were those below
		{"token --role administrator --scope user/Patient.rs", 2, "opens nothing to the role administrator"},
		{"token --role export-job --scope system/Patient.r --scope system/Patient.s", 0, "eyJ"}, // together
		{"token --role patient", 2, "needs the id of a patient"},
		{"--addr 127.0.0.1:0 --store simulated", 0, "served 0 ok"},
		{"audit verify --help", 0, "3 the records need a key"},
		{"audit verify --db /nowhere/audit.db", 2, "no such file"},
		{"--store postgres:/x", 2, "postgres://user@host:5432/database"},    // the example was taken for a secret
		{"audit verify --store postgres:/user@host/db", 2, "unknown store"}, // read the default file instead, and was content with it
		{"--export-queue http://user:secret@host", 2, "nats://host:4222"},
		{"--export-queue nats://host:4222", 2, "export-queue without exports"},
		{"--pattern actors", 2, "want one of naive, workerpool, optimized, limiter, adaptive"},
		{"--workers many", 2, "--workers"},
		{"--mode dryrun --pattern naive", 2, "mode is dryrun"},
		{"--addr 127.0.0.1:0 --store simulated --mode dry-run", 0, "served 0 ok"},
		{"--workers=-1", 2, "workers is -1"},
		{"--no-such-flag", 2, "--help"},
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
		} else if f.Tag.Get("kong") != "-" && (f.Tag.Get("env") == "" || f.Tag.Get("help") == "") {
			t.Errorf("%s of %s cannot be set by the environment, or has no help", f.Name, group)
		}
	}
}

func TestDefaultsAreThoseOfTheFlags(t *testing.T) {
	var parsed app.Command
	parser, err := kong.New(&parsed)
	require.NoError(t, err)
	if _, err := parser.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if parsed != app.Default() {
		t.Errorf("flags %+v\nDefault %+v", parsed, app.Default())
	}
}
