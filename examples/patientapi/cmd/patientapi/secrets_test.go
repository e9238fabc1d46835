package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// secretly are the flags whose values may hold a password, with one in them.
func secretly(secret string) map[string]string {
	return map[string]string{
		"SPILLWAY_STORE": "postgres://u:" + secret + "@127.0.0.1:1/d",
		"SPILLWAY_CACHE": "redis://u:" + secret + "@127.0.0.1:1/0",
	}
}

// What the environment holds is not repeated, whatever else is wrong.
func TestAPasswordIsNotRepeated(t *testing.T) {
	secret := rand.Text()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte(secret), 0o600))
	for name, value := range secretly(secret) {
		t.Setenv(name, value)
	}
	t.Setenv("SPILLWAY_ADDR", "127.0.0.1:0")
	for _, args := range []string{
		"", "serve", "--help", "serve --help", "token --help", "audit verify --help", "--no-such-flag", "--workers many", "word", "--json", "openapi --x", "audit verify", "audit verify --json",
		"--store simulated --pattern actors", "--cache none", "--cache-password-file " + file + " --store simulated --pattern actors", "--store-password-file " + file, "--fhir-page-key-file " + file, "--audit-key-file " + file,
		"--jwks " + file + " --issuer i --audience a", "--tls-cert " + file + " --tls-key " + file, "--store simulated --db " + file + " --store sqlite",
	} {
		var said bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &said, &said)
		if strings.Contains(said.String(), secret) || code == 1 && !strings.Contains(args, "audit") {
			t.Errorf("%s: exit %d: %s", args, code, &said)
		}
	}
	for _, address := range []string{"postgres://u:%s@h:port/d", "postgres://u:%s@[::1/d", "postgres://u:%s%%zz@h/d", "postgresql://h/d?password=%s&sslmode=x", "postgres:/u:%s@h/d", "mysql://u:%s@h/d", "postgres://h/d?sslcert=%s&sslkey=x"} {
		t.Setenv("SPILLWAY_STORE", fmt.Sprintf(address, secret))
		t.Setenv("SPILLWAY_CACHE", strings.Replace(fmt.Sprintf(address, secret), "postgres", "redis", 1))
		for _, args := range [][]string{{"--cache=none"}, {"--store=simulated"}, {"audit", "verify"}} {
			var said bytes.Buffer
			if code := run(t.Context(), args, &said, &said); code == 0 || strings.Contains(said.String(), secret) {
				t.Errorf("%s, %v: exit %d: %s", address, args, code, &said)
			}
		}
	}
}

// A password by mistake in another place of the command line is there for all to see, but
// need not go on into the log of whatever has started the command.
func TestAMisplacedPasswordIsNotRepeated(t *testing.T) {
	secret := rand.Text()
	for _, address := range secretly(secret) {
		for _, args := range [][]string{{address}, {"serve", address}, {"--workers", address}, {"--cache-ttl=" + address}, {"--mode", address}, {"--addr", address}, {"--admin-addr", address}, {"--pattern", address}, {"--role", address}, {"token", "--role", address}, {"audit", address}, {"--" + address}, {"-" + address}} {
			var said bytes.Buffer
			if code := run(t.Context(), args, &said, &said); code != 2 || strings.Contains(said.String(), secret) {
				t.Errorf("%v: exit %d: %s", args, code, &said)
			}
		}
	}
}

// Every user of a machine may read the command lines of all processes; the environment of
// one, its owner alone.
func TestTheProcessListHasNoSecret(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	secret := rand.Text()
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte(secret), 0o600))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--store=simulated", "--json", "--audit=off", "--audit-key-file=", "--fhir-page-key-file=", "--cache-timeout=10ms", "--cache-password-file="+password)
	var log bytes.Buffer
	cmd.Stderr = &log
	said, ready, err := launch(cmd, "SPILLWAY_CACHE=redis://u:"+secret+"@127.0.0.1:1/0")
	if err != nil {
		t.Fatalf("%v %s", err, &log)
	}
	own := fmt.Sprintf("/proc/%d/", ready.PID)
	for _, name := range []string{"cmdline", "comm", "status", "task/" + fmt.Sprint(ready.PID) + "/cmdline", "maps", "mountinfo"} {
		if text, err := os.ReadFile(own + name); err != nil || bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
	if info, err := os.Stat(own + "environ"); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("the environment: %v %v", info, err)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	report, err := io.ReadAll(said)
	assert.NoError(t, cmd.Wait())
	if err != nil || strings.Contains(string(report)+log.String(), secret) || !strings.Contains(log.String(), "cache does not answer") {
		t.Errorf("%v %s %s", err, report, &log)
	}
}
