package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
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
	await.True(a.t, target+" is answered", func() bool {
		resp, body = a.once(target)
		return resp == nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == ""
	})
	return resp, body
}

func (a *asker) once(target string) (*http.Response, []byte) {
	a.t.Helper()
	_, path, _ := strings.Cut(target, "/fhir/")
	r, err := http.NewRequestWithContext(a.t.Context(), "GET", "http://"+a.addr+"/fhir/"+path, nil)
	require.NoError(a.t, err)
	r.Header.Set("Authorization", a.bearer)
	r.Header.Set("Prefer", "respond-async")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	return resp, body
}

type manifest struct {
	Output []struct {
		Type, URL string
		Count     int
	}
}

// wait waits for an export. It may take as long as it likes for its next patients.
func (a *asker) wait(where string) (m manifest) {
	a.t.Helper()
	for done, progress := false, ""; !done; {
		await.True(a.t, "the export goes on", func() bool {
			resp, body := a.get(where)
			if resp == nil || resp.StatusCode != http.StatusAccepted && resp.StatusCode != http.StatusOK {
				a.t.Fatalf("%v %s", resp, body)
			}
			before := progress
			if progress, done = resp.Header.Get("X-Progress"), resp.StatusCode == http.StatusOK; !done {
				return progress != before
			}
			require.NoError(a.t, json.Unmarshal(body, &m))
			return true
		})
	}
	return m
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

// exporter is a service with exports, which is started and ended again and again.
type exporter struct {
	*asker
	dir  string // of the exports
	args []string
	cmd  *exec.Cmd
	rest io.Reader
}

func newExporter(t *testing.T, dir string, patients int, args ...string) *exporter {
	t.Helper()
	return &exporter{asker: newAsker(t), dir: dir, args: append([]string{
		"--addr=127.0.0.1:0", "--store=simulated", fmt.Sprint("--patients=", patients), "--json", "--cache=none",
		"--min-latency=1ms", "--max-latency=2ms", "--slow-start=0s", "--exports=" + dir,
	}, args...)}
}

func (e *exporter) start() {
	e.t.Helper()
	e.cmd = exec.CommandContext(e.t.Context(), os.Args[0], e.args...)
	e.cmd.Stderr = e.t.Output()
	rest, ready, err := launch(e.cmd)
	require.NoError(e.t, err)
	e.rest, e.addr = rest, ready.Addr
}

func (e *exporter) kill() {
	e.t.Helper()
	assert.NoError(e.t, e.cmd.Process.Kill())
	_ = e.cmd.Wait()
}

// stop tells it to stop, and waits until it has.
func (e *exporter) stop() {
	e.t.Helper()
	assert.NoError(e.t, e.cmd.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, e.rest)
	assert.NoError(e.t, e.cmd.Wait())
}

// begin begins an export and returns where it is.
func (a *asker) begin() (where string) {
	a.t.Helper()
	resp, body := a.get("/fhir/$export")
	if resp == nil || resp.StatusCode != http.StatusAccepted {
		a.t.Fatalf("%v %s", resp, body)
	}
	return resp.Header.Get("Content-Location")
}

// has reports whether the folder of an export has something in it whose name begins like
// that: tmp- is a part that is being written, part- one that is written, and end the end.
func (e *exporter) has(where, prefix string) bool {
	found, err := filepath.Glob(filepath.Join(e.dir, path.Base(where), prefix+"*"))
	assert.NoError(e.t, err)
	return len(found) > 0
}

// interrupted begins an export, waits until one of its files has that prefix, and ends the
// process, by kill or stop. An export that was faster than that is begun again, in the next
// process.
func (e *exporter) interrupted(prefix string, end func()) (where string) {
	e.t.Helper()
	for range 20 {
		e.start()
		where = e.begin()
		await.True(e.t, "the export has a file "+prefix, func() bool { return e.has(where, prefix) || e.has(where, "end") })
		end()
		if !e.has(where, "end") {
			return where
		}
	}
	e.t.Fatal("twenty exports came to their end before the process did")
	return ""
}

// A service is killed in the middle of an export, which has a part. Nobody asks for the
// export a second time, and it has everything once.
func TestKillingDoesNotEndAnExport(t *testing.T) {
	t.Parallel()
	const patients = 1500 // that is one part and half of another one
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit.db")
	e := newExporter(t, filepath.Join(dir, "exports"), patients, "--audit-db="+audit, "--error-rate=0.01")
	where := e.interrupted("part-", e.kill)
	e.start()
	e.whole(e.wait(where), patients)
	e.stop()
	verified(t, audit)
}

func verified(t *testing.T, db string) {
	t.Helper()
	var out strings.Builder
	if code := run(t.Context(), []string{"audit", "verify", "--db", db}, &out, t.Output()); code != 0 || !strings.Contains(out.String(), "the chain is whole") {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

// Two replicas share an engine and a folder. One has begun an export and is killed; the
// other one finishes it.
func TestAnotherReplicaGoesOn(t *testing.T) {
	t.Parallel()
	const patients = 600
	dir := t.TempDir()
	engine, err := embedded.Start(embedded.Config{Dir: filepath.Join(dir, "engine"), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer func() { _ = engine.Close(context.Background()) }()
	replica := func() *exporter {
		return newExporter(t, filepath.Join(dir, "exports"), patients, "--audit=off", "--error-rate=0", "--export-queue="+engine.URL())
	}
	one, two := replica(), replica()
	two.start() // idle, or the first one's exports are shared
	where := one.interrupted("tmp-", one.kill)
	two.whole(two.wait(where), patients)
	two.kill()
}

func TestAFolderOfExportsHasOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"--addr=127.0.0.1:0", "--store=simulated", "--patients=10", "--json", "--audit=off", "--exports=" + dir}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	_, _, err := launch(cmd)
	require.NoError(t, err)
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
}
