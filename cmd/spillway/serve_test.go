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
	magic := serve("--pattern", "magic")
	if out, _ := magic.CombinedOutput(); magic.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "magic") {
		t.Errorf("exit code %d\n%s", magic.ProcessState.ExitCode(), out)
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
	cmd := exec.CommandContext(t.Context(), os.Args[0], "queue", "inspect")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "--url or --dir") {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), out)
	}
}

// The help of other programs once waited for their builds, up to a minute.
func TestTheHelpOfOtherProgramsIsWhatTheyPrint(t *testing.T) {
	t.Parallel()
	for words, program := range map[string]string{
		"serve": service, "token": service, "audit": service, "audit verify": service,
		"queue": queue, "queue inspect": queue, "queue dead": queue, "queue retry": queue, "queue purge": queue,
	} {
		built, err := contestant.Build(t.Context(), contestant.Spec{Program: program}, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		command := append(strings.Fields(words), "--help")
		want, err := exec.CommandContext(t.Context(), built, command...).Output()
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("help", strings.ReplaceAll(words, " ", "-")+".txt")
		if *update {
			if err := os.WriteFile(name, want, 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		// A folder without sources, and a PATH without go: nothing can be built.
		cmd := exec.CommandContext(t.Context(), os.Args[0], command...)
		cmd.Dir, cmd.Env = t.TempDir(), []string{asCommand + "=1", "PATH=", "HOME=" + t.TempDir()}
		if got, err := cmd.CombinedOutput(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s --help: %v, and it prints\n%s\nrenew the text: go test ./cmd/spillway -run OtherPrograms -args -update", words, err, got)
		}
	}
}

func TestACopyOfTheCommandSaysHowToGetAnotherProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "spillway")
	if err := os.WriteFile(copied, own, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string) {
		cmd := exec.CommandContext(t.Context(), copied, args...)
		cmd.Dir, cmd.Env = dir, []string{asCommand + "=1", "PATH=", "HOME=" + dir}
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	for args, program := range map[string]string{"serve": "patientapi", "queue dead": "queue"} {
		code, out := run(strings.Fields(args)...)
		if code != 1 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "go build -o "+filepath.Join(dir, "spillway-"+program)+" github.com/") {
			t.Errorf("%s: exit code %d\n%s", args, code, out)
		}
	}
	script := "#!/bin/sh\necho asked for \"$@\"\nexit 7\n"
	if err := os.WriteFile(filepath.Join(dir, "spillway-queue"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, out := run("queue", "dead"); code != 7 || out != "asked for queue dead\n" {
		t.Errorf("with the program beside: exit code %d\n%s", code, out)
	}
}

func TestHelpAndVersionNeedNoCommand(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"help", "Start here:"}, {"help load", "--rate"}, {"help serve", "--pattern="}, {"help queue dead", "--payload"},
		{"--version", "spillway "}, {"version", "spillway "}, {"--help", "Start here:"},
	} {
		code, stdout, stderr := command(t, strings.Fields(c.args)...)
		if code != 0 || !strings.Contains(stdout, c.says) || stderr != "" {
			t.Errorf("%s: exit code %d, no %q in %s%s", c.args, code, c.says, stdout, stderr)
		}
	}
	if code, _, stderr := command(t, "help", "tea"); code != 2 || !strings.Contains(stderr, "tea") {
		t.Errorf("help tea: exit code %d, %s", code, stderr)
	}
}
