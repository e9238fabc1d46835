package httpapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

func TestSheddingLogsOneLineASecond(t *testing.T) {
	var out bytes.Buffer
	l := shedLog{logger: slog.New(slog.NewTextHandler(&out, nil)), pattern: "limiter"}
	start := time.Unix(1000, 0)
	for i := range 5000 { // five seconds at 1,000/s
		l.add(start.Add(time.Duration(i) * time.Millisecond))
	}
	l.flush(start.Add(5 * time.Second))
	l.flush(start.Add(5 * time.Second)) // nothing left to tell
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines in five seconds:\n%s", len(lines), out.String())
	}
	if !strings.Contains(lines[4], "refused=1000") {
		t.Errorf("a line should count what it stands for: %s", lines[4])
	}
	if !strings.Contains(lines[5], "refused=999") {
		t.Errorf("the end should tell the rest: %s", lines[5])
	}
}

func FuzzRequestID(f *testing.F) {
	f.Add("abc")
	f.Add("a\nb")
	f.Fuzz(func(t *testing.T, id string) {
		if saneRequestID(id) && (len(id) > 128 || strings.ContainsAny(id, " \t\r\n\"'<>=\\/\x00")) {
			t.Fatalf("%q would go into the log", id)
		}
	})
}

// quiet is an API over a few simulated patients, without a network.
func quiet(t testing.TB) *API {
	t.Helper()
	store, err := simulated.New(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := patterns.New(patterns.Naive, patterns.Config{Store: store, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Runner: runner, Store: store})
}

func FuzzBatchBody(f *testing.F) {
	s := quiet(f)
	f.Add(`{"ids":["P000001"]}`)
	f.Add(`{"ids":null}`)
	f.Add(`{"ids":[1]}{}`)
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/api/v1/patients:batch", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var req struct{ IDs []string }
		if w.Code == 200 && (json.Unmarshal([]byte(body), &req) != nil || len(req.IDs) < 1 || len(req.IDs) > MaxBatch) {
			t.Fatalf("%q is answered", body)
		}
		if w.Code >= 500 {
			t.Fatalf("%q is blamed on the server: %d %s", body, w.Code, w.Body)
		}
	})
}
