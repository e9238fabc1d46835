package r4

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/fhir"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

// Lines of an export are resources of FHIR, and every other answer about it is one as well.
func TestAnExportIsFHIR(t *testing.T) {
	soak.WithoutRace(t)
	exported(t, 5)
}

// exported makes an export and checks one of so many of its lines by the schema.
func exported(t *testing.T, every int) {
	t.Helper()
	schema() // compiled outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		runner, err := patterns.New(patterns.Limiter, patterns.Config{Workers: 4, QueueSize: 16})
		require.NoError(t, err)
		queue, err := memory.Open(memory.Config{Policy: export.Policy()})
		require.NoError(t, err)
		store := newStore(t)
		bulk, err := export.New(export.Config{Queue: queue, Store: store, Runner: runner, Resources: fhir.Resources, Dir: t.TempDir(), PartSize: 120})
		require.NoError(t, err)
		api, err := fhir.New(fhir.Config{Runner: runner, Store: store, Front: front.New(front.Config{Verifier: accesstest.Verifier{}}), Bulk: bulk})
		require.NoError(t, err)
		job := func(method, target string, want int) *httptest.ResponseRecorder {
			t.Helper()
			w, _ := ask(t, api, method, target, "", "Authorization", exportJob, "Prefer", "respond-async")
			if w.Code != want {
				t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
			}
			return w
		}
		where := job("GET", "/fhir/$export", 202).Header().Get("Content-Location")
		job("GET", where, 202)
		job("GET", "/fhir/$export?_type=Clinician", 400)
		job("GET", "/fhir/metadata", 200)
		synctest.Wait()
		go func() { _ = bulk.Run(t.Context()) }()
		synctest.Wait()
		kinds := map[string]int{}
		for _, f := range files(t, api, where) {
			r := httptest.NewRequest("GET", f, nil)
			r.Header.Set("Authorization", exportJob)
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			for line := range bytes.Lines(w.Body.Bytes()) {
				one := parse(t, line)
				if kinds[one.ResourceType]%every == 0 {
					if err := schema().Check(line); err != nil {
						t.Fatalf("%s: %v\n%s", f, err, line)
					}
				}
				if kinds[one.ResourceType]++; kinds[one.ResourceType]%50 == 0 {
					same(t, api, "/fhir/"+one.ResourceType+"/"+one.ID, line)
				}
			}
		}
		if kinds["Patient"] != people || kinds["Observation"] < people || kinds["MedicationRequest"] < people/2 {
			t.Errorf("%v", kinds)
		}
		job("DELETE", where, 202)
		job("GET", where, 404)
	})
}

// files are the URLs in the manifest at where.
func files(t *testing.T, api http.Handler, where string) (urls []string) {
	t.Helper()
	r := httptest.NewRequest("GET", where, nil)
	r.Header.Set("Authorization", exportJob)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	var m struct {
		TransactionTime, Request string
		RequiresAccessToken      *bool
		Output                   []struct{ Type, URL string }
		Error                    []json.RawMessage
	}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != 200 || m.TransactionTime == "" || m.Request == "" || m.RequiresAccessToken == nil || m.Error == nil {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	for _, f := range m.Output {
		if !strings.HasPrefix(f.URL, where+"/"+f.Type+"-") {
			t.Errorf("%s at %s", f.Type, f.URL)
		}
		urls = append(urls, f.URL)
	}
	return urls
}
