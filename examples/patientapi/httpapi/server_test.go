package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/route"
)

const people = 2000

// scripted is a store whose lookups do what the test says for some ids, and for batches.
type scripted struct {
	patientapi.Store
	script map[string]func(context.Context) error
	ping   error
}

func newScripted(base patientapi.Store) *scripted {
	s := &scripted{script: map[string]func(context.Context) error{}}
	s.Store = patientapi.Around(base, func(ctx context.Context, q patientapi.Question, ask func(context.Context) error) error {
		if do := s.script[cmp.Or(q.ID, q.Kind)]; do != nil {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return ask(ctx)
	})
	return s
}

func (s *scripted) Ping(context.Context) error { return s.ping }

// server is an API over real HTTP on loopback.
type server struct {
	*API
	*httptest.Server
	store  *scripted
	runner *patterns.Runner
	log    *lockedBuffer
	admin  *httptest.Server
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func serve(t *testing.T, pattern string, cfg patterns.Config, timeout time.Duration) *server {
	t.Helper()
	return serveOver(t, pattern, cfg, Config{Timeout: timeout})
}

// serveOver is serve with sources of the test's own.
func serveOver(t *testing.T, pattern string, cfg patterns.Config, api Config) *server {
	t.Helper()
	base, err := simulated.New(people, 1)
	require.NoError(t, err)
	s := &server{store: newScripted(base), log: &lockedBuffer{}}
	if cfg.Workers == 0 {
		cfg.Workers, cfg.QueueSize = 4, 16
	}
	if s.runner, err = patterns.New(pattern, cfg); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	api.Runner, api.Health, api.Logger, api.Verifier = s.runner, s.store, logger, accesstest.Verifier{}
	if api.Patients == nil {
		api.Patients = s.store
	}
	if api.Clinicians == nil {
		api.Clinicians = directory.Alone(s.store)
	}
	s.API = New(api)
	s.API.SetReady(true)
	s.admin = httptest.NewServer(s.API.Admin())
	t.Cleanup(s.admin.Close)
	s.Server = httptest.NewUnstartedServer(s.API)
	s.Server.Config.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	s.Server.Start()
	t.Cleanup(func() {
		s.Server.Close()
		assert.NoError(t, s.runner.Drain(context.Background()))
	})
	return s
}

// answered is a response, read whole.
type answered struct {
	status int
	header http.Header
	body   string
}

func (s *server) do(t *testing.T, method, path, body string, header ...string) answered {
	t.Helper()
	a, err := s.try(t.Context(), method, path, body, header...)
	require.NoError(t, err)
	return a
}

// operate asks the admin listener.
func (s *server) operate(t *testing.T, path string) answered {
	t.Helper()
	resp, err := s.admin.Client().Get(s.admin.URL + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answered{resp.StatusCode, resp.Header, string(b)}
}

func (s *server) try(ctx context.Context, method, path, body string, header ...string) (answered, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	req.Header.Set("Authorization", accesstest.Clinician)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		return answered{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answered{resp.StatusCode, resp.Header, string(b)}, err
}

func want(n int) string {
	var p patientapi.Patient
	patientapi.Generator{Seed: 1}.Patient(n, &p)
	b, err := json.Marshal(&p)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// problem is one as clients read it.
type problem struct {
	Type, Title string
	Status      int
	Errors      []route.Fault
	RequestID   string `json:"request_id"`
}

// problemIn checks that a is a problem of that status and type.
func problemIn(t *testing.T, a answered, status int, kind string) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	if a.status != status || p.Status != status || a.header.Get("Content-Type") != "application/problem+json" ||
		!strings.HasSuffix(p.Type, kind) || p.Title == "" || p.RequestID != a.header.Get("X-Request-Id") || p.RequestID == "" {
		t.Errorf("want %d %s, got %d %v %s", status, kind, a.status, a.header, a.body)
	}
	return p
}

var jsonBody = []string{"Content-Type", "application/json"}
