package main

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
		{"token --help", 0, "--ttl"},
		{"token", 0, "eyJ"},
		{"token --role patient --patient P000007 --scope patient/Patient.r --ttl 1m", 0, "eyJ"},
		{"token --scope bogus", 2, "user/Patient.rs, patient/*.read"},                             // was a token that opens nothing
		{"token --scope system/Patient.rs", 2, "role clinician: it may do what user/*.rs allows"}, // was taken, as were those below
		{"token --scope user/Procedure.rs", 2, "opens nothing to the role"},
		{"token --role administrator --scope user/Patient.rs", 2, "opens nothing to the role administrator"},
		{"token --role export-job --scope system/Patient.r --scope system/Patient.s", 0, "eyJ"}, // together
		{"token --scope user/Patient.rs --scope user/Observation.sr", 2, "user/Observation.sr"},
		{"token --role patient", 2, "needs the id of a patient"},
		{"token --role root", 2, "--role"},
		{"token --ttl=-1s", 2, "lifetime"},
		{"--addr 127.0.0.1:0 --store simulated", 0, "served 0 ok"},
		{"--addr 127.0.0.1:0 --store simulated", 0, "0 accesses on record"},
		{"audit verify --help", 0, "--head"},
		{"audit verify --help", 0, "3 the records need a key"},
		{"audit verify --db /nowhere/audit.db", 2, "no such file"},
		{"audit verify --key-file /nowhere/key", 2, "no such file"},
		{"--store postgres:/x", 2, "postgres://user@host:5432/database"},    // the example was taken for a secret
		{"--cache nowhere", 2, "redis://[user:password@]host[:port]"},       // so was that of this one
		{"--store simulated --trace-sample 7", 2, "trace-sample"},           // was taken, and meant nothing
		{"audit verify --store postgres:/user@host/db", 2, "unknown store"}, // read the default file instead, and was content with it
		{"audit", 2, "verify"},
		{"--export-queue http://user:secret@host", 2, "nats://host:4222"},
		{"--export-queue nats://host:4222", 2, "export-queue without exports"},
		{"--exports x --export-keep 0s", 2, "export-keep is 0s"},
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
		} else if f.Tag.Get("kong") != "-" && (f.Tag.Get("env") == "" || f.Tag.Get("help") == "") {
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
		"addr SPILLWAY_ADDR", "admin-addr SPILLWAY_ADMIN_ADDR", "admin-public SPILLWAY_ADMIN_PUBLIC", "audience SPILLWAY_AUDIENCE", "audit SPILLWAY_AUDIT", "audit-db SPILLWAY_AUDIT_DB",
		"audit-fail-closed SPILLWAY_AUDIT_FAIL_CLOSED", "audit-key-file SPILLWAY_AUDIT_KEY_FILE", "bulk-deadline SPILLWAY_BULK_DEADLINE",
		"cache SPILLWAY_CACHE", "cache-password-file SPILLWAY_CACHE_PASSWORD_FILE", "cache-timeout SPILLWAY_CACHE_TIMEOUT", "cache-ttl SPILLWAY_CACHE_TTL",
		"connections SPILLWAY_CONNECTIONS", "critical-deadline SPILLWAY_CRITICAL_DEADLINE", "db SPILLWAY_DB",
		"development-keys SPILLWAY_DEVELOPMENT_KEYS", "drain-delay SPILLWAY_DRAIN_DELAY", "error-rate SPILLWAY_ERROR_RATE",
		"export-keep SPILLWAY_EXPORT_KEEP", "export-queue SPILLWAY_EXPORT_QUEUE", "exports SPILLWAY_EXPORTS",
		"fhir-base SPILLWAY_FHIR_BASE", "fhir-page-key-file SPILLWAY_FHIR_PAGE_KEY_FILE", "help ",
		"issuer SPILLWAY_ISSUER", "json SPILLWAY_JSON", "jwks SPILLWAY_JWKS",
		"max-connections SPILLWAY_MAX_CONNECTIONS", "max-latency SPILLWAY_MAX_LATENCY", "min-latency SPILLWAY_MIN_LATENCY",
		"mode SPILLWAY_MODE", "normal-deadline SPILLWAY_NORMAL_DEADLINE",
		"otlp-endpoint SPILLWAY_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_ENDPOINT",
		"patients SPILLWAY_PATIENTS", "pattern SPILLWAY_PATTERN", "queue-size SPILLWAY_QUEUE_SIZE", "queue-wait SPILLWAY_QUEUE_WAIT",
		"readers SPILLWAY_READERS", "seed SPILLWAY_SEED", "shutdown-timeout SPILLWAY_SHUTDOWN_TIMEOUT", "slow-start SPILLWAY_SLOW_START", "store SPILLWAY_STORE",
		"store-password-file SPILLWAY_STORE_PASSWORD_FILE",
		"timeout SPILLWAY_TIMEOUT", "tls-cert SPILLWAY_TLS_CERT", "tls-key SPILLWAY_TLS_KEY", "trace-sample SPILLWAY_TRACE_SAMPLE", "workers SPILLWAY_WORKERS",
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

// Nobody who serves from a PostgreSQL expects every twentieth query to fail on purpose.
func TestAPostgreSQLIsLeftAsItIsUnlessAsked(t *testing.T) {
	const url = "--store=postgres://user@127.0.0.1/database"
	for _, c := range []struct {
		args []string
		env  string
		want app.FaultFlags
	}{
		{nil, "", app.Default().Faults},
		{[]string{url}, "", app.FaultFlags{}},
		{[]string{url, "--error-rate=0.5"}, "", app.FaultFlags{ErrorRate: 0.5}},
		{[]string{url, "--min-latency=1s"}, "", app.FaultFlags{MinLatency: time.Second, MaxLatency: time.Second}},
		{[]string{url}, "0.5", app.FaultFlags{ErrorRate: 0.5}},
	} {
		if c.env != "" {
			t.Setenv("SPILLWAY_ERROR_RATE", c.env)
		}
		var parsed app.Command
		parser, err := kong.New(&parsed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(c.args); err != nil || parsed.Faults != c.want {
			t.Errorf("%q, %q: %+v, %v; want %+v", c.args, c.env, parsed.Faults, err, c.want)
		}
	}
}
