package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route"
)

type byID struct {
	ID string `path:"id"`
}

// visited answers with whom its requests were about before they reached it.
func visited(ctx context.Context, _ byID) (string, error) {
	v := access.FromContext(ctx)
	return v.Principal.Subject + " " + strings.Join(v.Patients(), ","), nil
}

func guarded(t *testing.T, cfg Config) *API {
	t.Helper()
	cfg.Verifier = accesstest.Verifier{}
	api := New(cfg).API(route.Config{})
	err := api.Add(
		For(access.Patients, access.Read, route.New("GET", "/patients/{id}", visited)).Of("id"),
		For(access.Observations, access.Read, route.New("GET", "/observations/{id}", visited)).Of("id"),
		For(access.Patients, access.Search, route.New("POST", "/patients", echo)),
		Public(route.New("GET", "/about/{id}", visited)),
	)
	require.NoError(t, err)
	return api
}

func TestWhoAsksIsKnownToTheHandler(t *testing.T) {
	api, refusals := guarded(t, Config{}), map[string]bool{}
	for _, c := range []struct {
		path, token string
		status      int
		body        string
	}{
		{"/patients/P000002", "Bearer clinician", 200, `"doctor-1 P000002"`},
		{"/observations/P000002-o7", "Bearer clinician", 200, `"doctor-1 P000002"`},
		{"/patients/nonsense", "Bearer clinician", 200, `"doctor-1 "`}, // is not anybody's id: binding is to say so
		{"/patients/P000001", "Bearer patient", 200, `"patient-1 P000001"`},
		{"/about/P000002", "", 200, `" "`},
		{"/patients/P000002", "Bearer patient", 403, "forbidden"},
		{"/patients/nonsense", "Bearer patient", 403, "forbidden"},
		{"/observations/P000002-o7", "Bearer patient", 403, "forbidden"},
		{"/patients/P000002", "Bearer export-job", 403, "forbidden"},
		{"/patients/P000002", "", 401, "unauthenticated"},
		{"/patients/P000002?access_token=clinician", "", 401, "unauthenticated"},
		{"/patients/P000002", "clinician", 401, "unauthenticated"},
		{"/patients/P000002", "Bearer", 401, "unauthenticated"},
		{"/patients/P000002", "Bearer  clinician", 401, "unauthenticated"},
		{"/patients/P000002", "Bearer\tclinician", 401, "unauthenticated"},
		{"/patients/P000002", "DPoP clinician", 401, "unauthenticated"},
		{"/patients/P000002", "Basic ZG9jdG9yLTE6Y2xpbmljaWFu", 401, "unauthenticated"},
	} {
		header := []string{"X-Request-Id", "r-1"}
		if c.token != "" {
			header = append(header, "Authorization", c.token)
		}
		w := ask(api, "GET", c.path, nil, header...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s with %q: %d %s", c.path, c.token, w.Code, w.Body)
		}
		if w.Code == 401 {
			refusals[fmt.Sprint(w.Header(), w.Body)] = true
		}
		if challenge := w.Header().Get("WWW-Authenticate"); (challenge == "Bearer") != (c.status == 401) {
			t.Errorf("%d with challenge %q", w.Code, challenge)
		}
	}
	if len(refusals) != 1 {
		t.Errorf("refusals tell which check has failed: %v", refusals)
	}
}

// Two headers are none: which of them counts would be up to whoever reads them.
func TestTwoTokensAreNone(t *testing.T) {
	for _, first := range []string{"Bearer clinician", "Bearer x"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/patients/P000002", nil)
		r.Header["Authorization"] = []string{first, "Bearer clinician"}
		if guarded(t, Config{}).ServeHTTP(w, r); w.Code != 401 {
			t.Errorf("%s first: %d", first, w.Code)
		}
	}
}

// A full service told anybody that it was full, and took a slot to say 403.
func TestAuthorisationComesBeforeAdmissionAndBody(t *testing.T) {
	lim := newLimiter(t, limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	api := guarded(t, Config{Limiter: lim})
	permit, err := lim.Acquire(t.Context())
	require.NoError(t, err)
	defer permit.Release()
	for token, status := range map[string]int{"": 401, "Bearer nobody": 401, "Bearer administrator": 403, "Bearer patient": 503, "Bearer clinician": 503} {
		if w := ask(api, "POST", "/patients", unread{t}, "Authorization", token); w.Code != status {
			t.Errorf("%q: %d, want %d", token, w.Code, status)
		}
	}
}

func TestARouteMustSayWhoMayUseIt(t *testing.T) {
	get := func() *route.Route { return route.New("GET", "/patients/{id}", visited) }
	for name, o := range map[string]Operations{
		"no resource":     For("", access.Read, get()),
		"no action":       For(access.Patients, "", get()),
		"nothing at all":  {routes: []*route.Route{get()}},
		"no such patient": For(access.Patients, access.Read, get()).Of("patient"),
		"public patient":  Public(get()).Of("id"),
		"it writes":       For(access.Patients, access.Read, route.New("PUT", "/patients/{id}", visited)),
		"any method":      For(access.Patients, access.Read, route.New("", "/patients/{id}", visited)),
	} {
		api := New(Config{Verifier: accesstest.Verifier{}}).API(route.Config{})
		if err := api.Add(o); err == nil || !strings.Contains(err.Error(), "/patients/{id}") {
			t.Errorf("%s: %v", name, err)
		}
		if w := ask(api, "GET", "/patients/P000001", nil, "Authorization", "Bearer clinician"); w.Code != 404 {
			t.Errorf("%s is served: %d", name, w.Code)
		}
	}
}

// refusing is a Verifier that refuses in those words.
type refusing struct{ why string }

func (v refusing) Verify(context.Context, string) (access.Principal, error) {
	return access.Principal{}, errors.New(v.why)
}

// The caller is not told why a token is no good, and the log not which token it was.
func TestTheReasonIsForTheLogAlone(t *testing.T) {
	var log bytes.Buffer
	api := New(Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Verifier: refusing{"expired"}}).API(route.Config{})
	require.NoError(t, api.Add(For(access.Patients, access.Read, route.New("GET", "/patients/{id}", visited))))
	for range 20 {
		w := ask(api, "GET", "/patients/P000001", nil, "Authorization", "Bearer secret")
		if w.Code != 401 || strings.Contains(w.Body.String(), "expired") || len(w.Header()["Www-Authenticate"]) != 1 {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	api.front.Flush()
	if text := log.String(); strings.Contains(text, "secret") || strings.Contains(text, "P000001") || !strings.Contains(text, "reason=expired") || strings.Count(text, "\n") != 2 {
		t.Errorf("%s", text)
	}
}
