package fhir

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

// fetch asks as an export job does, for any type of answer.
func fetch(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Authorization", exportJob)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// begun starts an export, and returns its status URL.
func begun(t *testing.T, h http.Handler, target string, header ...string) string {
	t.Helper()
	w := fetch(h, "GET", target, append([]string{"Prefer", "respond-async"}, header...)...)
	where := w.Header().Get("Content-Location")
	if w.Code != 202 || !strings.HasPrefix(where, "http://example.com/fhir/export/") || !strings.Contains(w.Body.String(), `"OperationOutcome"`) {
		t.Fatalf("%s: %d %v %s", target, w.Code, w.Header(), w.Body)
	}
	return where
}

// ran does the jobs that there are to their end.
func ran(bulk *export.Exports) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = bulk.Run(ctx) }()
	synctest.Wait()
	time.Sleep(time.Hour) // of those that wait
	cancel()
	<-ended
}

func manifestAt(t *testing.T, h http.Handler, where string) (m manifest) {
	t.Helper()
	w := fetch(h, "GET", where)
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || json.Unmarshal(w.Body.Bytes(), &m) != nil {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	return m
}

func TestAnExportHasTheShapeOfBulkData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t, newStore(t), patterns.Adaptive)
		if head := fetch(api, "HEAD", "/fhir/$export", "Prefer", "respond-async"); head.Code != 204 || head.Header().Get("Content-Location") != "" {
			t.Errorf("HEAD: %d %v", head.Code, head.Header())
		}
		where := begun(t, api, "/fhir/$export")
		w := fetch(api, "GET", where)
		if after, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 202 || err != nil || after < 1 || w.Header().Get("X-Progress") != "accepted: 0 patients so far" {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		if w := fetch(api, "GET", where+"/Patient-000001.ndjson"); w.Code != 404 {
			t.Errorf("a file before the end: %d", w.Code)
		}
		ran(api.cfg.Bulk)
		m := manifestAt(t, api, where)
		if m.Request != "http://example.com/fhir/$export" || !m.RequiresAccessToken || m.TransactionTime.IsZero() || m.Error == nil || len(m.Output) != 9 {
			t.Errorf("%+v", m)
		}
		for _, f := range m.Output {
			w := fetch(api, "GET", f.URL, "Accept", ndjson)
			text := w.Body.Bytes()
			if w.Code != 200 || w.Header().Get("Content-Type") != ndjson || w.Header().Get("Content-Length") != strconv.Itoa(len(text)) || bytes.Count(text, []byte("\n")) != f.Count {
				t.Errorf("%s: %d %v", f.URL, w.Code, w.Header())
			}
			part := fetch(api, "GET", f.URL, "Range", "bytes=10-19")
			if part.Code != 206 || part.Body.String() != string(text[10:20]) || part.Header().Get("Content-Range") != fmt.Sprintf("bytes 10-19/%d", len(text)) {
				t.Errorf("%d %v %s", part.Code, part.Header(), part.Body)
			}
			for _, outside := range []string{fmt.Sprintf("bytes=%d-", len(text)), "bytes=x-y"} { // was plain text
				a := do(t, api, "GET", f.URL, nil, "Authorization", exportJob, "Range", outside)
				if a.Code != 416 || a.Header().Get("Content-Type") != mediaType || len(a.Issue) != 1 || a.Header().Get("ETag") != "" {
					t.Errorf("%s: %d %v %s", outside, a.Code, a.Header(), a.Body)
				}
			}
			if head := fetch(api, "HEAD", f.URL); head.Code != 200 || head.Header().Get("Content-Length") != strconv.Itoa(len(text)) {
				t.Errorf("%d %v", head.Code, head.Header())
			}
		}
		if w := fetch(api, "DELETE", where); w.Code != 202 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		for _, target := range []string{where, m.Output[0].URL} {
			if a := do(t, api, "GET", target, nil, "Authorization", exportJob); a.Code != 404 || a.Issue[0].Code != "not-found" {
				t.Errorf("%s: %d %s", target, a.Code, a.Body)
			}
		}
		if w := fetch(api, "DELETE", where); w.Code != 404 {
			t.Errorf("%d", w.Code)
		}
	})
}

func TestWhatAnExportIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t, newStore(t), patterns.Limiter)
		for target, want := range map[string]string{
			"/fhir/Patient/$export?_type=Patient":                                                       "/Patient/$export?_type=Patient Patient",
			"/fhir/$export?_type=MedicationRequest,Patient&_outputFormat=ndjson":                        "/$export?_outputFormat=application%2Ffhir%2Bndjson&_type=Patient%2CMedicationRequest Patient,MedicationRequest",
			"/fhir/$export?_type=MedicationRequest&_type=Patient&_outputFormat=application/fhir+ndjson": "/$export?_outputFormat=application%2Ffhir%2Bndjson&_type=Patient%2CMedicationRequest Patient,MedicationRequest",
			"/fhir/$export?_since=1999-02-03T04:05:06.7+02:00&_outputFormat=application/ndjson":         "/$export?_outputFormat=application%2Ffhir%2Bndjson&_since=1999-02-03T02%3A05%3A06Z Patient,Observation,MedicationRequest",
		} {
			where := begun(t, api, target)
			ran(api.cfg.Bulk)
			m := manifestAt(t, api, where)
			var kinds []string
			for _, f := range m.Output {
				if !slices.Contains(kinds, f.Type) {
					kinds = append(kinds, f.Type)
				}
			}
			if got := strings.TrimPrefix(m.Request, "http://example.com/fhir") + " " + strings.Join(kinds, ","); got != want || m.Output == nil {
				t.Errorf("%s:\n got %s\nwant %s", target, got, want)
			}
		}
		// Of a replica whose clock is ahead.
		soon := url.QueryEscape(time.Now().Add(clocksDiffer).Format(time.RFC3339))
		if where := begun(t, api, "/fhir/$export?_since="+soon); where == "" {
			t.Error("no export")
		}
		// What was further ahead gave an empty export, as if nothing had changed.
		late := url.QueryEscape(time.Now().Add(clocksDiffer + time.Second).Format(time.RFC3339))
		if a := get(t, api, "/fhir/$export?_since="+late, "Authorization", exportJob, "Prefer", "respond-async"); a.Code != 400 || a.Issue[0].Diagnostics != "_since must not be in the future" {
			t.Errorf("%d %s", a.Code, a.Body)
		}
		where := begun(t, api, "/fhir/$export?_type=Patient&_elements=name&secret=1", "Prefer", "respond-async, handling=lenient")
		ran(api.cfg.Bulk)
		if m := manifestAt(t, api, where); m.Request != "http://example.com/fhir/$export?_type=Patient" {
			t.Errorf("%+v", m)
		}
	})
}

func TestWhatAnExportDoesNotTakeIsNamed(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	for target, location := range map[string]string{
		"_type=Patient,Secret":        "http._type",
		"_since=secret":               "http._since",
		"_since=9999-01-01T00:00:00Z": "http._since",
		"_outputFormat=secret":        "http._outputFormat",
		"_typeFilter=secret":          "http._typeFilter",
		"patient=secret":              "http.patient",
		"secret=1":                    "",
	} {
		a := get(t, api, "/fhir/$export?"+target, "Authorization", exportJob, "Prefer", "respond-async")
		if a.Code != 400 || len(a.Issue) != 1 || strings.Join(a.Issue[0].Location, "") != location || strings.Contains(strings.ToLower(a.Body.String()), "secret") {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	for _, prefer := range []string{"", "return=minimal", "respond"} {
		a := get(t, api, "/fhir/$export", "Authorization", exportJob, "Prefer", prefer)
		if a.Code != 400 || a.Issue[0].Code != "required" || !strings.Contains(a.Issue[0].Diagnostics, "Prefer must be sent as respond-async") {
			t.Errorf("%q: %d %s", prefer, a.Code, a.Body)
		}
	}
	api = newAPI(t, newStore(t), patterns.Limiter, func(c *Config) { c.Bulk = nil })
	if a := get(t, api, "/fhir/$export", "Authorization", exportJob); a.Code != 501 || a.Issue[0].Code != "not-supported" {
		t.Errorf("without exports: %d %s", a.Code, a.Body)
	}
}

// An export of somebody else, and one that does not exist, have one answer.
func TestAnExportBelongsToItsCaller(t *testing.T) {
	for token, principal := range map[string]access.Principal{
		"other":         {Subject: "export-2", Role: access.ExportJob, Scopes: []string{"system/*.rs"}},
		"patients-only": {Subject: "export-1", Role: access.ExportJob, Scopes: []string{"system/Patient.rs"}},
	} {
		accesstest.Roles[token] = principal
		defer delete(accesstest.Roles, token)
	}
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t, newStore(t), patterns.Limiter)
		where := begun(t, api, "/fhir/$export")
		ran(api.cfg.Bulk)
		nowhere := "http://example.com/fhir/export/" + access.NewTicket("export-1")
		for _, token := range []string{"other", "clinician", "administrator", "patient", "nobody"} {
			for _, method := range []string{"GET", "DELETE"} {
				for _, file := range []string{"", "/Patient-000001.ndjson"} {
					if method == "DELETE" && file != "" {
						continue
					}
					there, missing := fetch(api, method, where+file, "Authorization", "Bearer "+token), fetch(api, method, nowhere+file, "Authorization", "Bearer "+token)
					if there.Code != missing.Code || there.Body.String() != missing.Body.String() || token == "other" && there.Code != 404 || there.Code < 400 {
						t.Errorf("%s %s%s: %d %s, %d %s", method, token, file, there.Code, there.Body, missing.Code, missing.Body)
					}
				}
			}
		}
		if mine, missing := fetch(api, "GET", nowhere), fetch(api, "GET", where, "Authorization", "Bearer other"); mine.Body.String() != missing.Body.String() {
			t.Errorf("%s\n%s", mine.Body, missing.Body)
		}
		// 403 for a file that is there, and 404 for one that is not, told how many there are.
		absent := fetch(api, "GET", where+"/Observation-000999.ndjson", "Authorization", "Bearer patients-only")
		for name, want := range map[string]int{"Patient": 200, "Observation": 404, "MedicationRequest": 404} {
			w := fetch(api, "GET", where+"/"+name+"-000001.ndjson", "Authorization", "Bearer patients-only")
			if w.Code != want || want == 404 && w.Body.String() != absent.Body.String() {
				t.Errorf("%s with a token for patients: %d %s", name, w.Code, w.Body)
			}
		}
		if m := narrow(t, api, where); m.Extension == nil || !slices.Equal(m.Extension.Types, []string{"Observation", "MedicationRequest"}) {
			t.Errorf("what is withheld from this reader is not said: %+v", m)
		}
		if w := fetch(api, "GET", "/fhir/$export?_type=Observation", "Authorization", "Bearer patients-only", "Prefer", "respond-async"); w.Code != 403 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		less := begun(t, api, "/fhir/$export", "Authorization", "Bearer patients-only")
		ran(api.cfg.Bulk)
		if m := manifestAt(t, api, less); len(m.Output) != 3 || m.Output[2].Type != "Patient" || m.Extension == nil || len(m.Extension.Types) != 2 {
			t.Errorf("%+v", m)
		}
		if m := manifestAt(t, api, where); len(m.Output) != 9 || m.Extension != nil {
			t.Errorf("%+v", m)
		}
		// How many there are of what a token does not open was in the manifest.
		m := narrow(t, api, where)
		if len(m.Output) != 3 || slices.ContainsFunc(m.Output, func(f manifestFile) bool { return f.Type != "Patient" }) {
			t.Errorf("with a token for patients: %+v", m)
		}
	})
}

// narrow is manifestAt for a token that opens patients alone.
func narrow(t *testing.T, h http.Handler, where string) (m manifest) {
	t.Helper()
	w := fetch(h, "GET", where, "Authorization", "Bearer patients-only")
	if w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &m) != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return m
}

func TestAFailedExportSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t, newFaulty(newStore(t), func(int64) error { return patientapi.ErrUnavailable }), patterns.Limiter)
		where := begun(t, api, "/fhir/$export")
		ran(api.cfg.Bulk)
		a := get(t, api, where, "Authorization", exportJob)
		if a.Code != 500 || a.Issue[0].Code != "exception" || !strings.Contains(a.Issue[0].Diagnostics, "the export has failed: the patient store has not answered") {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	})
}

func TestAFullQueueOfExportsIsOverload(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	queue, err := memory.Open(memory.Config{MaxQueued: 1})
	require.NoError(t, err)
	if api.cfg.Bulk, err = export.New(export.Config{Queue: queue, Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	begun(t, api, "/fhir/$export")
	a := get(t, api, "/fhir/$export", "Authorization", exportJob, "Prefer", "respond-async")
	if after, err := strconv.Atoi(a.Header().Get("Retry-After")); a.Code != 503 || err != nil || after < 1 || a.Issue[0].Code != "throttled" || a.Header().Get("Spillway-Reason") != "queue_full" {
		t.Errorf("%d %v %s", a.Code, a.Header(), a.Body)
	}
}

// flushed calls at when what was written is sent.
type flushed struct {
	*httptest.ResponseRecorder
	at func()
}

func (f flushed) FlushError() error { f.at(); return nil }

// The time in which a client reads a file is nobody's slot.
func TestAFileHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t, newStore(t), patterns.Adaptive)
		where := begun(t, api, "/fhir/$export")
		ran(api.cfg.Bulk)
		r := httptest.NewRequest("GET", where+"/Observation-000001.ndjson", nil)
		r.Header.Set("Authorization", exportJob)
		flushes := 0
		api.ServeHTTP(flushed{httptest.NewRecorder(), func() {
			flushes++
			if n := api.cfg.Runner.Limiter().Stats().InFlight; n != 0 {
				t.Errorf("%d slots are in use", n)
			}
		}}, r)
		if flushes == 0 {
			t.Error("it is held until its end")
		}
	})
}

// journal is an audit.Log in memory.
type journal struct {
	mu     sync.Mutex
	events []string
}

func (j *journal) Record(_ context.Context, e audit.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, fmt.Sprintf("%s %s %s %d %s, %d patients", e.Subject, e.Action, e.Outcome, e.Status, e.Route, int64(len(e.Patients))+e.More))
	return nil
}

func TestEveryStepOfAnExportIsOnRecord(t *testing.T) {
	accesstest.Roles["other"] = access.Principal{Subject: "export-2", Role: access.ExportJob, Scopes: []string{"system/*.rs"}}
	defer delete(accesstest.Roles, "other")
	synctest.Test(t, func(t *testing.T) {
		log := new(journal)
		api := newAPI(t, newStore(t), patterns.Adaptive, func(c *Config) {
			c.Front = front.New(front.Config{Verifier: accesstest.Verifier{}, Limiter: c.Runner.Admission(), Audit: log, AuditClosed: true})
		})
		where := begun(t, api, "/fhir/$export")
		fetch(api, "GET", where)
		ran(api.cfg.Bulk)
		fetch(api, "GET", where)
		fetch(api, "GET", where+"/Patient-000003.ndjson")
		fetch(api, "GET", where, "Authorization", "Bearer other")
		fetch(api, "GET", where+"/Patient-000003.ndjson", "Authorization", "Bearer other")
		fetch(api, "DELETE", where, "Authorization", "Bearer other")
		fetch(api, "GET", where, "Authorization", "Bearer clinician")
		fetch(api, "DELETE", where)
		fetch(api, "GET", where)
		require.NoError(t, api.cfg.Runner.Drain(t.Context()))
		fetch(api, "GET", "/fhir/Patient/$export", "Prefer", "respond-async")
		want := []string{
			"export-1 export-all granted 202 GET /fhir/$export, 0 patients",
			"export-1 export-all granted 202 GET /fhir/export/{id}, 0 patients",
			"export-1 export-all granted 200 GET /fhir/export/{id}, 0 patients",
			"export-1 export-all granted 200 GET /fhir/export/{id}/{file}, 10 patients",
			"export-2 export-all denied 404 GET /fhir/export/{id}, 0 patients",
			"export-2 export-all denied 404 GET /fhir/export/{id}/{file}, 0 patients",
			"export-2 export-all denied 404 DELETE /fhir/export/{id}, 0 patients",
			"doctor-1 export-all denied 403 GET /fhir/export/{id}, 0 patients",
			"export-1 export-all granted 202 DELETE /fhir/export/{id}, 0 patients",
			"export-1 export-all granted 404 GET /fhir/export/{id}, 0 patients",
			"export-1 export-all shed 503 GET /fhir/Patient/$export, 0 patients",
		}
		if !slices.Equal(log.events, want) {
			t.Errorf("\n%s\nwant\n%s", strings.Join(log.events, "\n"), strings.Join(want, "\n"))
		}
	})
}
