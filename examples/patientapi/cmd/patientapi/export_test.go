package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/jobqueue/embedded"
)

// asker asks a service as an export job.
type asker struct {
	t      *testing.T
	bearer string
	addr   string
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	var token strings.Builder
	if code := run(t.Context(), []string{"token", "--role", "export-job"}, &token, os.Stderr); code != 0 {
		t.Fatal("no token: exit", code)
	}
	return &asker{t: t, bearer: "Bearer " + strings.TrimSpace(token.String())}
}

// get returns an answer and its body; nil if nothing answers. Asked to come back later, as
// by a service that shares a busy machine, it does.
func (a *asker) get(target string) (resp *http.Response, body []byte) {
	a.t.Helper()
	for range 60 {
		if resp, body = a.once(target); resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
			break
		}
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil {
			break
		}
		time.Sleep(time.Duration(after) * time.Second)
	}
	return resp, body
}

func (a *asker) once(target string) (*http.Response, []byte) {
	a.t.Helper()
	_, path, _ := strings.Cut(target, "/fhir/")
	r, err := http.NewRequestWithContext(a.t.Context(), "GET", "http://"+a.addr+"/fhir/"+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Authorization", a.bearer)
	r.Header.Set("Prefer", "respond-async")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp, body
}

type manifest struct {
	Output []struct {
		Type, URL string
		Count     int
	}
}

// wait waits for an export at most that long.
func (a *asker) wait(where string, most time.Duration) (m manifest, done bool) {
	a.t.Helper()
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		switch resp, body := a.get(where); {
		case resp == nil || resp.StatusCode != 202 && resp.StatusCode != 200:
			a.t.Fatalf("%v %s", resp, body)
		case resp.StatusCode == 200:
			if err := json.Unmarshal(body, &m); err != nil {
				a.t.Fatal(err)
			}
			return m, true
		}
	}
	return m, false
}

// whole reports an export without everything about so many patients, each resource once.
func (a *asker) whole(m manifest, patients int) {
	a.t.Helper()
	seen, kinds := map[string]bool{}, map[string]int{}
	for _, f := range m.Output {
		resp, body := a.get(f.URL)
		if resp == nil || resp.StatusCode != 200 || bytes.Count(body, []byte("\n")) != f.Count {
			a.t.Errorf("%s: %v", f.URL, resp)
		}
		lines := bufio.NewScanner(bytes.NewReader(body))
		for lines.Scan() {
			var r struct{ ResourceType, ID string }
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil || r.ResourceType != f.Type || seen[r.ID] {
				a.t.Fatalf("%s: %v: %s", f.URL, err, lines.Bytes())
			}
			seen[r.ID] = true
			kinds[r.ResourceType]++
		}
	}
	observations := 0
	for n := range patients {
		observations += len(patientapi.Generator{Seed: 1}.Observations(n + 1))
	}
	if kinds["Patient"] != patients || kinds["Observation"] != observations || kinds["MedicationRequest"] == 0 {
		a.t.Errorf("%v, want %d patients and %d observations", kinds, patients, observations)
	}
}

// A service is killed in the middle of an export, again and again. Nobody asks for the
// export a second time, and it has everything once.
func TestKillingDoesNotEndAnExport(t *testing.T) {
	const kills, patients = 3, 10_000 // so many that no life is long enough for them
	dir := t.TempDir()
	args := []string{
		"--addr=127.0.0.1:0", "--store=simulated", "--patients=10000", "--json", "--audit-db=" + filepath.Join(dir, "audit.db"), "--cache=none",
		"--min-latency=1ms", "--max-latency=3ms", "--error-rate=0.01", "--slow-start=0s", "--exports=" + filepath.Join(dir, "exports"),
	}
	a := newAsker(t)
	where := ""
	for life := 0; ; life++ {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Stderr = t.Output()
		rest, ready, err := launch(cmd)
		if err != nil {
			t.Fatal(err)
		}
		a.addr = ready.Addr
		if where == "" {
			resp, body := a.get("/fhir/$export")
			if resp == nil || resp.StatusCode != 202 {
				t.Fatalf("%v %s", resp, body)
			}
			where = resp.Header.Get("Content-Location")
		}
		if life < kills {
			// A job whose process was killed is given to the next one six seconds later.
			progress := a.patients(where)
			for end := time.Now().Add(time.Minute); a.patients(where) == progress && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(mathrand.N(300 * time.Millisecond))
			if resp, _ := a.once(where); resp != nil && resp.StatusCode == 200 {
				t.Error("it was done before the kills")
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait()
			continue
		}
		m, done := a.wait(where, 4*time.Minute)
		if !done {
			t.Fatal("the export has no end")
		}
		a.whole(m, patients)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, rest)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		break
	}
	var out strings.Builder
	if code := run(t.Context(), []string{"audit", "verify", "--db", filepath.Join(dir, "audit.db")}, &out, t.Output()); code != 0 || !strings.Contains(out.String(), "the chain is whole") {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

// patients is how many the export has come to. It does not wait as long as a busy service
// asks for: meanwhile the export would go on to its end.
func (a *asker) patients(where string) string {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		resp, _ := a.once(where)
		if resp == nil {
			return ""
		}
		if resp.StatusCode != http.StatusServiceUnavailable {
			return resp.Header.Get("X-Progress")
		}
	}
	return ""
}

// A service that is told to stop ends soon, leaves the export, and the next one goes on.
func TestAnExportDoesNotKeepAServiceFromStopping(t *testing.T) {
	dir := t.TempDir()
	args := []string{
		"--addr=127.0.0.1:0", "--store=simulated", "--patients=2500", "--json", "--audit=off", "--cache=none",
		"--min-latency=1ms", "--max-latency=2ms", "--error-rate=0", "--slow-start=0s", "--exports=" + dir,
	}
	a := newAsker(t)
	where := ""
	for life := range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Stderr = t.Output()
		rest, ready, err := launch(cmd)
		if err != nil {
			t.Fatal(err)
		}
		a.addr = ready.Addr
		if life == 0 {
			resp, body := a.get("/fhir/Patient/$export")
			if resp == nil || resp.StatusCode != 202 {
				t.Fatalf("%v %s", resp, body)
			}
			where = resp.Header.Get("Content-Location")
			time.Sleep(200 * time.Millisecond)
		} else if m, done := a.wait(where, 4*time.Minute); done {
			a.whole(m, 2500)
		} else {
			t.Error("the export has no end")
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, rest)
		var exit *exec.ExitError
		if err := cmd.Wait(); errors.As(err, &exit) {
			t.Errorf("life %d: %v", life, err)
		}
	}
}

// Two replicas share an engine and a folder. One has begun an export and is killed; the
// other one finishes it.
func TestAnotherReplicaGoesOn(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Start(embedded.Config{Dir: filepath.Join(dir, "engine"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close(context.Background()) }()
	replica := func() (*exec.Cmd, string) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "--addr=127.0.0.1:0", "--store=simulated", "--patients=4000", "--json", "--audit=off", "--cache=none",
			"--min-latency=1ms", "--max-latency=2ms", "--error-rate=0", "--slow-start=0s", "--exports="+filepath.Join(dir, "exports"), "--export-queue="+engine.URL())
		cmd.Stderr = t.Output()
		_, ready, err := launch(cmd)
		if err != nil {
			t.Fatal(err)
		}
		return cmd, ready.Addr
	}
	a := newAsker(t)
	one, addr := replica()
	a.addr = addr
	resp, body := a.get("/fhir/$export")
	if resp == nil || resp.StatusCode != 202 {
		t.Fatalf("%v %s", resp, body)
	}
	where := resp.Header.Get("Content-Location")
	for end := time.Now().Add(time.Minute); strings.HasPrefix(a.patients(where), "accepted") && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	two, addr := replica()
	_ = one.Process.Kill()
	_ = one.Wait()
	a.addr = addr
	if m, done := a.wait(where, 4*time.Minute); done {
		a.whole(m, 4000)
	} else {
		t.Error("the export has no end")
	}
	_ = two.Process.Kill()
	_ = two.Wait()
}

func TestAFolderOfExportsHasOneProcess(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--addr=127.0.0.1:0", "--store=simulated", "--patients=10", "--json", "--audit=off", "--exports=" + dir}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	_, _, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	if code := run(t.Context(), args, io.Discard, &stderr); code != 2 || !strings.Contains(stderr.String(), "in use by another process") {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	args[len(args)-1] = "--exports=" + os.DevNull + "/x"
	stderr.Reset()
	if code := run(t.Context(), args, io.Discard, &stderr); code != 2 || !strings.Contains(stderr.String(), "exports: ") {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}

func TestThePasswordOfAQueueIsNotRepeated(t *testing.T) {
	secret := rand.Text()
	address, dir := "nats://u:"+secret+"@127.0.0.1:1", "--exports="+t.TempDir()
	for _, args := range [][]string{{dir, "--export-queue=" + address}, {dir, "--export-queue=nats://" + secret + "@h"}, {"--export-queue", address}, {dir, "--export-queue", "mqtt://u:" + secret + "@h"}} {
		old := os.Args
		os.Args = args // the command line, as other users see it
		var said bytes.Buffer
		code := run(t.Context(), args, &said, &said)
		if os.Args = old; code != 2 || strings.Contains(said.String(), secret) {
			t.Errorf("%q: exit %d: %s", args, code, &said)
		}
	}
	t.Setenv("SPILLWAY_EXPORT_QUEUE", address)
	var said bytes.Buffer
	code := run(t.Context(), []string{"--addr=127.0.0.1:0", "--store=simulated", "--patients=10", "--audit=off", dir}, &said, &said)
	if code != 2 || strings.Contains(said.String(), secret) || !strings.Contains(said.String(), "exports: ") {
		t.Errorf("exit %d: %s", code, &said)
	}
}
