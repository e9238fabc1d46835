package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/token"
)

// keys is the folder of the development keys of all tests.
var keys string

// collectorKey is what the environment says that a collector of spans is sent.
var collectorKey = rand.Text()

func TestMain(m *testing.M) {
	var err error
	if keys, err = os.MkdirTemp("", "patientapi-keys"); err != nil {
		panic(err)
	}
	os.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer "+collectorKey)
	auditBounds.timeout, auditBounds.patience = time.Minute, time.Minute
	code := m.Run()
	os.RemoveAll(keys)
	os.Exit(code)
}

// tokenOf returns a token of that role.
func tokenOf(g token.Grant) string {
	s, err := token.Development(keys)
	if err != nil {
		panic(err)
	}
	g.Lifetime = time.Hour
	text, err := s.Mint(g)
	if err != nil {
		panic(err)
	}
	return text
}

// asked is a request of a clinician.
func asked(ctx context.Context, url string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+tokenOf(token.Grant{Role: access.Clinician}))
	return req
}

func statusOf(t *testing.T, addr, path, token string) int {
	t.Helper()
	req := asked(t.Context(), "http://"+addr+path)
	req.Header.Del("Authorization")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	return resp.StatusCode
}

func TestKeysOfAnIssuerReplaceThoseOfDevelopment(t *testing.T) {
	issuer, err := token.NewSigner()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(file, issuer.JWKS(), 0o600))
	c := quick()
	c.Auth = AuthFlags{JWKS: file, Issuer: token.DevelopmentIssuer, Audience: token.DevelopmentAudience}
	c.Admin.Addr = "127.0.0.1:0"
	r := start(t, c)
	if _, metrics := r.operate(t, "/metrics"); !strings.Contains(metrics, "patientapi_keys_stale 0") {
		t.Error("the metrics do not say whether the keys are old")
	}
	text, err := issuer.Mint(token.Grant{Role: access.Clinician, Lifetime: time.Hour})
	require.NoError(t, err)
	if status := statusOf(t, r.addr, "/api/v1/patients/P000007", text); status != 200 {
		t.Errorf("a token of the issuer: %d", status)
	}
	if status := statusOf(t, r.addr, "/api/v1/patients/P000007", tokenOf(token.Grant{Role: access.Clinician})); status != 401 {
		t.Errorf("a token of the development keys: %d", status)
	}
	r.end(t)
	if strings.Contains(r.stderr.String(), "development keys") {
		t.Errorf("%s", &r.stderr)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// The line that serve prints is to be pasted as it is.
func TestThePrintedCommandReadsAPatient(t *testing.T) {
	c := quick()
	c.JSON = false
	ctx, cancel := context.WithCancel(t.Context())
	var said, stderr bytes.Buffer
	err := c.Run(ctx, io.MultiWriter(&said, writerFunc(func(line []byte) {
		if !bytes.HasPrefix(line, []byte("curl ")) {
			return
		}
		defer cancel()
		words := strings.Split(strings.TrimSpace(string(line)), "'")
		header, url := words[1], strings.TrimSpace(words[2])
		if status := statusOf(t, strings.TrimPrefix(url, "http://"), "", strings.TrimPrefix(header, "Authorization: Bearer ")); status != 200 {
			t.Errorf("%s: %d", line, status)
		}
	})), &stderr)
	if err != nil || !strings.Contains(said.String(), "/api/v1/patients/P000001\n") || !strings.Contains(stderr.String(), "do not use with real patients") {
		t.Errorf("%v\n%s%s", err, &said, &stderr)
	}
}
