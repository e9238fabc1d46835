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
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestATokenIsNeeded(t *testing.T) {
	r := start(t, quick())
	own := tokenOf(token.Grant{Role: access.Patient, Patient: "P000007"})
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/api/v1/patients/P000007", "", 401},
		{"/api/v1/patients/P000007", "nonsense", 401},
		{"/api/v1/patients/P000007", own, 200},
		{"/api/v1/patients/P000008", own, 403},
		{"/api/v1/patients?id=P000008", own, 403},
		{"/api/v1/patients?id=P999999", own, 403},
		{"/livez", "", 200},
		{"/openapi.json", "", 200},
	} {
		if status := statusOf(t, r.addr, c.path, c.token); status != c.status {
			t.Errorf("%s with %q: %d, want %d", c.path, c.token, status, c.status)
		}
	}
}

func TestKeysOfAnIssuerReplaceThoseOfDevelopment(t *testing.T) {
	issuer, err := token.NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, issuer.JWKS(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := quick()
	c.Auth = AuthFlags{JWKS: file, Issuer: token.DevelopmentIssuer, Audience: token.DevelopmentAudience}
	r := start(t, c)
	text, err := issuer.Mint(token.Grant{Role: access.Clinician, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if status := statusOf(t, r.addr, "/api/v1/patients/P000007", text); status != 200 {
		t.Errorf("a token of the issuer: %d", status)
	}
	if status := statusOf(t, r.addr, "/api/v1/patients/P000007", tokenOf(token.Grant{Role: access.Clinician})); status != 401 {
		t.Errorf("a token of the development keys: %d", status)
	}
	if _, err := r.report(t); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.stderr.String(), "development keys") {
		t.Errorf("%s", &r.stderr)
	}
}

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
