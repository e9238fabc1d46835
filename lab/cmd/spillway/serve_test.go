package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillway-go/spillway/lab/contestant"
)

func TestCtrlCEndsTheBuildOfTheService(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	err := become(&environment{ctx: ctx, stderr: &stderr}, service, "serve", []string{"never seen"})
	if code := reportError(&stderr, err); code != 130 {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}

func TestServeBecomesTheService(t *testing.T) {
	t.Parallel()
	if _, err := contestant.Build(t.Context(), contestant.Spec{Program: service}, t.Output()); err != nil {
		t.Fatal(err)
	}
	serve := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"serve"}, args...)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		return cmd
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{{"--pattern magic", 2, "magic"}} {
		cmd := serve(strings.Fields(c.args)...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("serve %s: exit code %d, want %d and %q in\n%s", c.args, cmd.ProcessState.ExitCode(), c.code, c.says, out)
		}
	}

	cmd := serve("--store", "simulated", "--addr", "127.0.0.1:0", "--audit-db", filepath.Join(t.TempDir(), "audit.db"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewReader(stdout)
	ready, err := lines.ReadString('\n')
	_, rest, found := strings.Cut(ready, "http://")
	if err != nil || !found {
		t.Fatalf("%q, %v, %s", ready, err, stderr.String())
	}
	address, _, _ := strings.Cut(rest, "/")
	resp, err := http.Get("http://" + address + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	_, _ = lines.WriteTo(&report)
	if err := cmd.Wait(); err != nil || !strings.Contains(report.String(), "served 0 ok") {
		t.Errorf("%v\n%s%s", err, report.String(), stderr.String())
	}
}

func TestQueueBecomesItsProgram(t *testing.T) {
	t.Parallel()
	if _, err := contestant.Build(t.Context(), contestant.Spec{Program: queue}, t.Output()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{{"--help", 0, "spillway queue retry --all"}, {"inspect", 2, "--url or --dir"}} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"queue"}, strings.Fields(c.args)...)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("queue %s: exit code %d, want %d and %q in\n%s", c.args, cmd.ProcessState.ExitCode(), c.code, c.says, out)
		}
	}
}
