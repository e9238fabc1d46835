package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/app"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	auditpostgres "github.com/spillway-go/spillway/examples/patientapi/audit/postgres"
	auditsqlite "github.com/spillway-go/spillway/examples/patientapi/audit/sqlite"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
)

// mortal is a service that is started and killed again and again.
type mortal struct {
	name, bearer string
	args, env    []string
	linger       func() // before it is killed; nil: not at all

	mu       sync.Mutex
	answered []string        // ids of requests whose answers the clients have got
	restarts []time.Duration // from the start of the process until it is ready
}

// live starts the service, loads it until clients have a random number of answers, and
// kills it. Every other life has some answers; in the others it may not come to one.
func (m *mortal) live(t *testing.T, life int) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], m.args...)
	cmd.Stderr = t.Output()
	began := time.Now()
	_, ready, err := launch(cmd, m.env...)
	if err != nil {
		t.Error(err)
		return
	}
	m.restarts = append(m.restarts, time.Since(began))
	var clients sync.WaitGroup
	before := m.count()
	for client := range 4 {
		clients.Go(func() { m.ask(fmt.Sprintf("%s-%d-%d", m.name, life, client), "http://"+ready.Addr, client == 0) })
	}
	enough := before + rand.N(3)*rand.N(50)
	if life%2 == 0 {
		enough += 2
	}
	await.True(t, "the clients have some answers", func() bool { return m.count() >= enough })
	if m.linger != nil {
		m.linger()
	}
	assert.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	clients.Wait()
}

func (m *mortal) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.answered)
}

// unrecorded reads an answer and reports whether it says that it is not on record, as it does
// when the disk is too busy. One that was cut off may be about to say so.
func unrecorded(resp *http.Response) bool {
	if resp.StatusCode != http.StatusServiceUnavailable {
		return false
	}
	body, err := io.ReadAll(resp.Body)
	return err != nil || strings.Contains(string(body), "not-recorded")
}

// ask asks until nothing answers any more; a stranger, as often as a request without a
// token goes on record by itself.
func (m *mortal) ask(name, url string, stranger bool) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	for n := 0; !stranger || n < audit.StrangersEach; n++ {
		id := fmt.Sprintf("%s-%d", name, n)
		req, err := http.NewRequest(http.MethodGet, url+"/api/v1/patients/P000042", nil)
		if err != nil {
			return
		}
		req.Header.Set("X-Request-Id", id)
		if !stranger {
			req.Header.Set("Authorization", m.bearer)
		}
		resp, err := client.Do(req)
		if err != nil {
			return
		}
		// With its first byte the answer says that the request is on record.
		if !unrecorded(resp) {
			m.mu.Lock()
			m.answered = append(m.answered, id)
			m.mu.Unlock()
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return
		}
	}
}

// A service is killed under load. Whatever a client has got an answer for is on record,
// and the chain is whole. Two services share the chain, so each is also killed while the
// other one writes.
func TestKillingLosesNoRecord(t *testing.T) {
	t.Parallel()
	killedAgainAndAgain(t, 4, nil, inFile(t))
}

func TestKillingLosesNoRecordInPostgres(t *testing.T) {
	t.Parallel()
	killedAgainAndAgain(t, 4, nil, inPostgres(t))
}

// recording is where services keep their records, and how these are read.
type recording struct {
	args, env []string
	verify    app.VerifyCommand
	open      func() (audit.Storage, error)
}

func inFile(t *testing.T) recording {
	db := filepath.Join(t.TempDir(), "audit.db")
	return recording{args: []string{"--store=simulated", "--audit-db=" + db}, verify: app.VerifyCommand{DB: db}, open: func() (audit.Storage, error) { return auditsqlite.OpenExisting(t.Context(), db) }}
}

func inPostgres(t *testing.T) recording {
	url := postgrestest.New(t, 0).URL
	return recording{env: []string{"SPILLWAY_STORE=" + url}, verify: app.VerifyCommand{Store: url}, open: func() (audit.Storage, error) { return auditpostgres.OpenExisting(t.Context(), url, "") }}
}

// killedAgainAndAgain kills services that often, fails the test if a record is lost, and
// returns how long it took each process until it was ready, sorted.
func killedAgainAndAgain(t *testing.T, kills int, linger func(), where recording) []time.Duration {
	t.Helper()
	const services = 2
	authorization := bearer(t)
	var answered []string
	var restarts []time.Duration
	var all sync.WaitGroup
	var mu sync.Mutex
	for n := range services {
		m := &mortal{name: fmt.Sprint("s", n), bearer: authorization, linger: linger, env: where.env, args: append([]string{
			"--addr=127.0.0.1:0", "--patients=100", "--json", "--audit-fail-closed", "--cache=none",
			"--min-latency=0s", "--max-latency=2ms", "--error-rate=0.05", "--slow-start=0s",
		}, where.args...)}
		all.Go(func() {
			for life := range kills / services {
				m.live(t, life)
			}
			mu.Lock()
			defer mu.Unlock()
			answered, restarts = append(answered, m.answered...), append(restarts, m.restarts...)
		})
	}
	all.Wait()

	recorded := recordedIDs(t, where)
	lost := 0
	for _, id := range answered {
		if recorded[id] == 0 {
			lost++
		}
	}
	if len(answered) < kills || lost > 0 {
		t.Errorf("%d answers, of which %d are not among the %d records", len(answered), lost, len(recorded))
	}
	var out strings.Builder
	if err := where.verify.Run(t.Context(), &out, t.Output()); err != nil || !strings.Contains(out.String(), "the chain is whole") || !strings.Contains(out.String(), "processes were killed") {
		t.Errorf("%v: %s", err, out.String())
	}
	t.Logf("%d answers, %d requests on record", len(answered), len(recorded))
	slices.Sort(restarts)
	return restarts
}

// recordedIDs returns how many records each request has.
func recordedIDs(t *testing.T, where recording) map[string]int {
	t.Helper()
	s, err := where.open()
	require.NoError(t, err)
	defer s.Close()
	ids := map[string]int{}
	for _, r := range audittest.Read(t, s) {
		ids[r.Event.RequestID]++
	}
	return ids
}
