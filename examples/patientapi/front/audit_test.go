package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route"
)

// journal is an audit.Log in memory.
type journal struct {
	events []audit.Event
	err    error
	fails  int    // from this record on; 0: never
	first  func() // called at the first record
}

func (j *journal) Record(_ context.Context, e audit.Event) error {
	if j.first != nil && len(j.events) == 0 {
		j.first()
	}
	j.events = append(j.events, e)
	if j.fails > 0 && len(j.events) >= j.fails {
		return errors.New("disk full")
	}
	return j.err
}

// list is an event in one line, without its time.
func list(e audit.Event) string {
	unread := ""
	if e.Unread {
		unread = " unread"
	}
	return fmt.Sprintf("%s %s %s %s [%s]+%d %s %d %s %s%s", e.RequestID, e.Subject, e.Action, e.Resource, strings.Join(e.Patients, " "), e.More, e.Outcome, e.Status, e.Role, e.Route, unread)
}

type streamed struct {
	After int `query:"after"`
}

// exported streams about many patients, whom it touches as it goes; the client is cut off
// after some of them.
func exported(ctx context.Context, q streamed) (route.Stream, error) {
	return route.Stream{Write: func(w io.Writer) error {
		for n := range 150 {
			if q.After > 0 && n == q.After {
				return errors.New("the store failed")
			}
			if err := access.FromContext(ctx).Touch(fmt.Sprintf("P%06d", n)); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(w, n); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func audited(t *testing.T, cfg Config) *API {
	t.Helper()
	api := guarded(t, cfg)
	err := api.Add(
		For(access.Patients, access.ExportAll, route.New("GET", "/export", exported)),
		For(access.Patients, access.Search, route.New("GET", "/panic", func(context.Context, struct{}) (string, error) { panic("broken") })),
		For(access.Patients, access.Search, route.New("GET", "/fails", func(context.Context, struct{}) (string, error) { return "", errors.New("broken") })),
		For(access.Patients, access.Search, route.New("GET", "/gone", func(context.Context, struct{}) (string, error) { return "", &route.Problem{Status: 410} })),
		For(access.Patients, access.Search, route.New("GET", "/none", func(context.Context, struct{}) (string, error) { return "", &route.Problem{Status: 404} })),
	)
	if err == nil {
		err = api.Page("GET /livez", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}
	require.NoError(t, err)
	return api
}

func TestEveryAccessIsOnRecord(t *testing.T) {
	lim := newLimiter(t, limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	for _, c := range []struct {
		method, path, token string
		busy                bool
		want                []string
	}{
		{method: "GET", path: "/patients/P000002", token: "clinician", want: []string{"r-1 doctor-1 read Patient [P000002]+0 granted 200 clinician GET /patients/{id}"}},
		{method: "HEAD", path: "/patients/P000002", token: "clinician", want: []string{"r-1 doctor-1 read Patient [P000002]+0 granted 200 clinician GET /patients/{id}"}},
		{method: "GET", path: "/observations/P000002-o7", token: "clinician", want: []string{"r-1 doctor-1 read Observation [P000002]+0 granted 200 clinician GET /observations/{id}"}},
		{method: "GET", path: "/patients/P000002", want: []string{"r-1  read Patient [P000002]+0 denied 401  GET /patients/{id}"}},
		{method: "GET", path: "/patients/x,y", want: []string{"r-1  read Patient []+0 denied 401  GET /patients/{id}"}},
		{method: "GET", path: "/patients/P000002", token: "patient", want: []string{"r-1 patient-1 read Patient [P000002]+0 denied 403 patient GET /patients/{id}"}},
		{method: "GET", path: "/patients/P000002", token: "clinician", busy: true, want: []string{"r-1 doctor-1 read Patient [P000002]+0 shed 503 clinician GET /patients/{id}"}},
		{method: "POST", path: "/patients", token: "clinician", want: []string{"r-1 doctor-1 search Patient []+0 granted 200 clinician POST /patients"}},
		{method: "POST", path: "/patients", token: "clinician", busy: true, want: []string{"r-1 doctor-1 search Patient []+0 shed 503 clinician POST /patients unread"}},
		{method: "POST", path: "/patients", token: "administrator", want: []string{"r-1 office-1 search Patient []+0 denied 403 administrator POST /patients unread"}},
		{method: "POST", path: "/patients", want: []string{"r-1  search Patient []+0 denied 401  POST /patients unread"}},
		{method: "GET", path: "/none", token: "clinician", want: []string{"r-1 doctor-1 search Patient []+0 granted 404 clinician GET /none"}},
		{method: "GET", path: "/gone", token: "clinician", want: []string{"r-1 doctor-1 search Patient []+0 failed 410 clinician GET /gone"}},
		{method: "GET", path: "/fails", token: "clinician", want: []string{"r-1 doctor-1 search Patient []+0 failed 500 clinician GET /fails"}},
		{method: "GET", path: "/panic", token: "clinician", want: []string{"r-1 doctor-1 search Patient []+0 failed 500 clinician GET /panic"}},
		{method: "GET", path: "/about/P000002"}, {method: "GET", path: "/livez"}, {method: "GET", path: "/nowhere"}, {method: "PUT", path: "/patients/P000002"},
	} {
		log := new(journal)
		api := audited(t, Config{Audit: log, Limiter: lim})
		if c.busy {
			permit, err := lim.Acquire(t.Context())
			require.NoError(t, err)
			defer permit.Release()
		}
		var body io.Reader
		header := []string{"X-Request-Id", "r-1", "Authorization", "Bearer " + c.token}
		if c.method == "POST" {
			body, header = strings.NewReader(`{}`), append(header, "Content-Type", "application/json")
		}
		before := time.Now()
		ask(api, c.method, c.path, body, header...)
		var got []string
		for _, e := range log.events {
			got = append(got, list(e))
			if source := e.Source; (e.Subject == "") != (source == "192.0.2.1") {
				t.Errorf("%q asks from %q", e.Subject, source)
			}
			if e.Time.Before(before) || e.Time.After(time.Now()) {
				t.Errorf("at %v, asked at %v", e.Time, before)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s as %q, busy %v:\n got %q\nwant %q", c.method, c.path, c.token, c.busy, got, c.want)
		}
		if c.busy {
			lim = newLimiter(t, limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
		}
	}
}

// untouched is a ResponseWriter that must not be written to before record is set.
type untouched struct {
	*httptest.ResponseRecorder
	t      *testing.T
	record bool
}

func (w *untouched) WriteHeader(status int) {
	if !w.record {
		w.t.Error("the answer begins before it is on record")
	}
	w.ResponseRecorder.WriteHeader(status)
}

func (w *untouched) Write(p []byte) (int, error) {
	if !w.record {
		w.t.Error("the answer begins before it is on record")
	}
	return w.ResponseRecorder.Write(p)
}

func TestNoByteLeavesBeforeItIsOnRecord(t *testing.T) {
	for path, token := range map[string]string{"/patients/P000002": "clinician", "/export": "export-job", "/fails": "clinician", "/patients/P000003": "patient", "/patients/P000004": ""} {
		w := &untouched{ResponseRecorder: httptest.NewRecorder(), t: t}
		log := &journal{first: func() { w.record = true }}
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		audited(t, Config{Audit: log}).ServeHTTP(w, r)
		if !w.record || w.Body.Len() == 0 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// The wait for a commit is no work: other requests may have the place meanwhile.
func TestTheLimiterDoesNotSeeTheWaitForTheRecord(t *testing.T) {
	lim := newLimiter(t, limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	log := &journal{first: func() {
		permit, err := lim.TryAcquire(t.Context())
		assert.NoError(t, err)
		permit.Release()
	}}
	if w := ask(audited(t, Config{Audit: log, Limiter: lim}), "GET", "/patients/P000002", nil, "Authorization", accesstest.Clinician); w.Code != 200 || len(log.events) != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// watching is a ResponseWriter that finds lines of an export about patients who are not on
// record.
type watching struct {
	*httptest.ResponseRecorder
	t     *testing.T
	log   *journal
	parts int
}

func (w *watching) Write(p []byte) (int, error) {
	w.parts++
	for line := range strings.Lines(string(p)) {
		id := "P" + strings.Repeat("0", 7-len(line)) + strings.TrimSpace(line)
		if !slices.ContainsFunc(w.log.events, func(e audit.Event) bool { return slices.Contains(e.Patients, id) }) {
			w.t.Errorf("data about %s leaves, and is not on record", id)
		}
	}
	return w.ResponseRecorder.Write(p)
}

// A process that is killed during an export has on record what it was, and whom it sent.
func TestNoPartOfAStreamLeavesBeforeItIsOnRecord(t *testing.T) {
	log := new(journal)
	w := &watching{ResponseRecorder: httptest.NewRecorder(), t: t, log: log}
	r := httptest.NewRequest("GET", "/export", nil)
	r.Header.Set("Authorization", "Bearer export-job")
	audited(t, Config{Audit: log}).ServeHTTP(w, r)
	if w.parts != 150 || log.events[0].Action != string(access.ExportAll) || !strings.HasSuffix(w.Body.String(), "\n149\n") {
		t.Errorf("%d parts, %d records, the first %s", w.parts, len(log.events), list(log.events[0]))
	}
}

// fetched asks over a network, and returns what has come back when the server has ended.
func fetched(t *testing.T, api http.Handler, path, token string) (status int, body string, err error) {
	t.Helper()
	srv := httptest.NewServer(api)
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := srv.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// Where it has to be on record, what cannot be is not sent, and the client sees that it
// did not get all.
func TestAStreamBreaksOffWhereItIsNotRecorded(t *testing.T) {
	for _, closed := range []bool{true, false} {
		_, body, err := fetched(t, audited(t, Config{Audit: &journal{fails: 20}, AuditClosed: closed}), "/export", "export-job")
		if (err != nil) != closed || closed == strings.Contains(body, "\n20\n") {
			t.Errorf("closed %v: %v, %q", closed, err, body)
		}
	}
}

// A stream is on record before its first byte, and at its end with whom it was about.
func TestAStreamIsRecordedAtBothEnds(t *testing.T) {
	for path, want := range map[string]struct {
		outcome  audit.Outcome
		patients int
		whole    bool
	}{"/export": {audit.Granted, 150, true}, "/export?after=120": {audit.Failed, 120, false}} {
		log := new(journal)
		_, _, err := fetched(t, audited(t, Config{Audit: log}), path, "export-job")
		if (err == nil) != want.whole || len(log.events) != want.patients+1 {
			t.Fatalf("%s: %v, %d records", path, err, len(log.events))
		}
		first, last := log.events[0], log.events[want.patients]
		if first.Outcome != audit.Granted || len(first.Patients) != 1 || last.Outcome != want.outcome || len(last.Patients)+int(last.More) != want.patients || last.RequestID != first.RequestID {
			t.Errorf("%s:\n%s\n%s", path, list(first), list(last))
		}
	}
}

func TestWhatIsNotOnRecord(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for path, token := range map[string]string{"/patients/P000002": "clinician", "/export": "export-job", "/patients/P000003": ""} {
			var logged bytes.Buffer
			api := audited(t, Config{Audit: &journal{err: errors.New("disk full, about P000002")}, AuditClosed: closed, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			status, body, err := fetched(t, api, path, token)
			if refused := status == 503 && strings.Contains(body, "not-recorded") && !strings.Contains(body, "doctor-1"); err != nil || refused != closed {
				t.Errorf("%s, closed %v: %v, %d %s", path, closed, err, status, body)
			}
			if text := logged.String(); !strings.Contains(text, "not on record") || strings.Contains(text, "P000002") {
				t.Error(text)
			}
		}
	}
}

// What a handler has said about the answer it could not give goes as well.
func TestNothingOfAnUnrecordedAnswerIsLeft(t *testing.T) {
	api := New(Config{Audit: &journal{err: errors.New("away")}, AuditClosed: true, Verifier: accesstest.Verifier{}}).API(route.Config{})
	err := api.Add(For(access.Patients, access.Search, route.New("GET", "/patients", func(context.Context, struct{}) (route.Response[string], error) {
		return route.Response[string]{Body: "Mustermann", Header: http.Header{"Etag": {`"Mustermann"`}, "Link": {"<Mustermann>"}}}, nil
	})))
	require.NoError(t, err)
	w := ask(api, "GET", "/patients", nil, "Authorization", accesstest.Clinician, "X-Request-Id", "r-1")
	all := fmt.Sprint(w.Header(), w.Body)
	if w.Code != 503 || strings.Contains(all, "Mustermann") || w.Header().Get("X-Request-Id") != "r-1" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", w.Code, all)
	}
}

// The client's context has ended, and the record is made all the same.
func TestAClientThatLeavesIsOnRecord(t *testing.T) {
	var m audittest.Memory
	w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: &m})
	require.NoError(t, err)
	defer w.Close()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "GET", "/patients/P000002", nil)
	r.Header.Set("Authorization", accesstest.Clinician)
	audited(t, Config{Audit: w}).ServeHTTP(httptest.NewRecorder(), r)
	if events := m.Events(); len(events) != 1 || events[0].Patients[0] != "P000002" {
		t.Errorf("%+v", events)
	}
}
