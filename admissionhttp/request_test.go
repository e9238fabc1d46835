package admissionhttp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// ask sends a GET with headers, given as name and value in turn.
func ask(h http.Handler, ctx context.Context, headers ...string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	return w
}

func TestAPriorityIsBelievedFromTrustedCallersOnly(t *testing.T) {
	inner := func(r *http.Request) bool { return r.Header.Get("X-Inner") != "" }
	low := func(*http.Request) spillway.Priority { return spillway.Low }
	for name, c := range map[string]struct {
		cfg     admissionhttp.Config
		ctx     spillway.Priority
		headers []string
		want    spillway.Priority
	}{
		"no caller is trusted":    {headers: []string{"Spillway-Priority", "critical"}},
		"a stranger":              {cfg: admissionhttp.Config{Trusted: inner}, headers: []string{"Spillway-Priority", "critical"}},
		"a trusted caller":        {cfg: admissionhttp.Config{Trusted: inner}, headers: []string{"Spillway-Priority", "critical", "X-Inner", "1"}, want: spillway.Critical},
		"normal beats a context":  {cfg: admissionhttp.Config{Trusted: inner}, ctx: spillway.Low, headers: []string{"Spillway-Priority", "Normal", "X-Inner", "1"}},
		"nonsense says nothing":   {cfg: admissionhttp.Config{Trusted: inner}, ctx: spillway.High, headers: []string{"Spillway-Priority", "127", "X-Inner", "1"}, want: spillway.High},
		"two lines say nothing":   {cfg: admissionhttp.Config{Trusted: inner}, headers: []string{"Spillway-Priority", "high", "Spillway-Priority", "low", "X-Inner", "1"}},
		"a route's":               {ctx: spillway.Critical, want: spillway.Critical},
		"a function":              {cfg: admissionhttp.Config{Priority: low}, ctx: spillway.Critical, want: spillway.Low},
		"a header and a function": {cfg: admissionhttp.Config{Priority: low, Trusted: inner}, headers: []string{"Spillway-Priority", "high", "X-Inner", "1"}, want: spillway.High},
	} {
		t.Run(name, func(t *testing.T) {
			lim := one(t)
			c.cfg.Limiter = lim
			var below spillway.Priority
			h := middleware(t, c.cfg)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { below = spillway.PriorityFrom(r.Context()) }))
			ask(admissionhttp.WithPriority(c.ctx, h), t.Context(), c.headers...)
			if n := lim.Stats().ByPriority[c.want].Admitted; n != 1 || below != c.want {
				t.Errorf("admitted %d as %v, the handler has %v", n, c.want, below)
			}
		})
	}
}

func TestADeadlineIsOnlyEverMadeEarlier(t *testing.T) {
	const header = admissionhttp.HeaderDeadline
	for name, c := range map[string]struct {
		own     time.Duration // of the request's context; zero: none
		cfg     admissionhttp.Config
		headers []string
		want    time.Duration // zero: none
	}{
		"none":                       {},
		"the header":                 {headers: []string{header, "1500"}, want: 1500 * time.Millisecond},
		"earlier than the context":   {own: time.Minute, headers: []string{header, "2S"}, want: 2 * time.Second},
		"never later":                {own: time.Second, headers: []string{header, "99999999H"}, want: time.Second},
		"absurd":                     {headers: []string{header, "99999999H"}, want: 24 * time.Hour},
		"nonsense":                   {own: time.Second, headers: []string{header, "-5"}, want: time.Second},
		"two lines":                  {headers: []string{header, "5", header, "6"}},
		"of the priority":            {cfg: byPriority, want: 5 * time.Second},
		"not beyond the priority's":  {cfg: byPriority, headers: []string{header, "1H"}, want: 5 * time.Second},
		"before the priority's":      {cfg: byPriority, headers: []string{header, "100"}, want: 100 * time.Millisecond},
		"the context before these":   {own: time.Second, cfg: byPriority, want: time.Second},
		"a stream has no default":    {cfg: byPriority, headers: []string{"Accept", "text/html, text/event-stream"}},
		"an upgrade has no default":  {cfg: byPriority, headers: []string{"Upgrade", "websocket"}},
		"another header":             {cfg: admissionhttp.Config{DeadlineHeader: "grpc-timeout"}, headers: []string{"Grpc-Timeout", "7M", header, "1"}, want: 7 * time.Minute},
		"no header":                  {cfg: admissionhttp.Config{DeadlineHeader: "-"}, headers: []string{header, "1"}},
		"streams of one's own":       {cfg: longCritical, headers: []string{"Accept", "text/event-stream"}, want: 5 * time.Second},
		"these have no default also": {cfg: longCritical, headers: []string{"X-Long", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.cfg.Limiter = one(t)
				var got time.Duration
				h := middleware(t, c.cfg)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if end, ok := r.Context().Deadline(); ok {
						got = time.Until(end)
					}
				}))
				ctx := t.Context()
				if c.own > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.own)
					defer cancel()
				}
				if w := ask(h, ctx, c.headers...); w.Code != 200 || got != c.want {
					t.Errorf("%d: %v is left, want %v", w.Code, got, c.want)
				}
			})
		})
	}
}

var (
	byPriority   = admissionhttp.Config{Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: 5 * time.Second}}
	longCritical = admissionhttp.Config{
		Deadlines: byPriority.Deadlines,
		Long:      func(r *http.Request) bool { return r.Header.Get("X-Long") != "" },
	}
)

// In a dry run, and while the limiter is off, neither refusals nor deadlines take effect.
func TestADryRunEnforcesNothing(t *testing.T) {
	for _, mode := range []limiter.Mode{limiter.DryRun, limiter.Off, limiter.Enforce} {
		t.Run(mode.String(), func(t *testing.T) {
			lim := one(t)
			lim.SetMode(mode)
			cfg := byPriority
			cfg.Limiter = lim
			deadline := false
			h := middleware(t, cfg)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, deadline = r.Context().Deadline() }))
			status := ask(h, t.Context()).Code
			if enforced := mode == limiter.Enforce; status != 200 || deadline != enforced {
				t.Errorf("with room: %d, a deadline: %v", status, deadline)
			}
			_, _ = lim.Acquire(t.Context())
			want := 200
			if mode == limiter.Enforce {
				want = 503
			}
			for _, left := range []string{"1000", "0"} {
				if w := ask(h, t.Context(), admissionhttp.HeaderDeadline, left); w.Code != want {
					t.Errorf("without room, %s ms left: %d, want %d", left, w.Code, want)
				}
			}
		})
	}
}

func TestEnforcementForAPartOfTheCallers(t *testing.T) {
	refused := func(percent int) map[string]bool {
		lim := one(t)
		_, _ = lim.Acquire(t.Context())
		h := middleware(t, admissionhttp.Config{
			Limiter: lim, EnforcePercent: percent,
			Caller: func(r *http.Request) string { return r.Header.Get("X-Caller") },
		})(ok)
		enforced := map[string]bool{}
		for i := range 1000 {
			caller := fmt.Sprint("tenant ", i)
			if w := ask(h, t.Context(), "X-Caller", caller); w.Code == 503 {
				enforced[caller] = true
			}
		}
		return enforced
	}
	few, again, more := refused(20), refused(20), refused(60)
	if n := len(few); n < 150 || n > 250 {
		t.Errorf("%d of 1000 at 20 %%", n)
	}
	for caller := range few {
		if !again[caller] || !more[caller] {
			t.Fatalf("%s is not enforced every time, or not with a larger part", caller)
		}
	}
	if n := len(refused(100)); n != 1000 {
		t.Errorf("%d of 1000 at 100 %%", n)
	}
}

func TestCost(t *testing.T) {
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(10), QueueSize: -1}))
	inFlight := 0
	h := middleware(t, admissionhttp.Config{Limiter: lim, Cost: func(r *http.Request) int { return len(r.Header) }})(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inFlight = lim.Stats().InFlight }))
	ask(h, t.Context(), "A", "", "B", "", "C", "")
	if inFlight != 3 {
		t.Errorf("%d slots", inFlight)
	}
	h = middleware(t, admissionhttp.Config{Limiter: lim})(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inFlight = lim.Stats().InFlight }))
	ask(h, spillway.WithCost(t.Context(), 4))
	if inFlight != 4 {
		t.Errorf("%d slots by the context", inFlight)
	}
}

func TestClassesHaveLimitersOfTheirOwnAndBoundedNames(t *testing.T) {
	family := must(limiter.NewKeyed(limiter.KeyedConfig{New: func(string) limiter.Config {
		return limiter.Config{Law: limit.NewFixed(1), QueueSize: -1}
	}}))
	h := middleware(t, admissionhttp.Config{
		Keyed: family, Class: func(r *http.Request) string { return r.Header.Get("X-Class") },
	})(ok)
	busy := must(family.Acquire(t.Context(), "a"))
	defer busy.Release()
	if a, b := ask(h, t.Context(), "X-Class", "a"), ask(h, t.Context(), "X-Class", "b"); a.Code != 503 || b.Code != 200 {
		t.Errorf("%d and %d", a.Code, b.Code)
	}
	ask(h, t.Context(), "X-Class", strings.Repeat("x", 1<<20))
	for key := range family.All() {
		if len(key) > 128 {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
}

func TestNewNamesAllThatIsWrong(t *testing.T) {
	lim := one(t)
	family, _ := limiter.NewKeyed(limiter.KeyedConfig{})
	_, err := admissionhttp.New(admissionhttp.Config{
		Limiter: lim, Keyed: family, FairShares: true, EnforcePercent: 101, DeadlineHeader: "a b",
		Deadlines: map[spillway.Priority]time.Duration{9: 1, spillway.Low: -1, spillway.High: 2000}, Probes: []string{"/"}, ClientTimeout: 30,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range []string{"Keyed:", "Class", "FairShares", "101", "DeadlineHeader", "priority(9)", "low", "high has 2µs: the least is 1ms, and a plain number counts nanoseconds (write 2*time.Second)", "ClientTimeout is 30ns", "Probes"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in:\n%v", word, err)
		}
	}
	if _, err := admissionhttp.New(admissionhttp.Config{Class: func(*http.Request) string { return "" }}); err == nil {
		t.Error("a Class without Keyed")
	}
}

func TestTheModeOfTheEnvironment(t *testing.T) {
	for text, want := range map[string]limiter.Mode{
		"": limiter.Enforce, "enforce": limiter.Enforce, "dryrun": limiter.DryRun, "Dry-Run": limiter.DryRun, "OFF": limiter.Off,
	} {
		t.Setenv("SPILLWAY_MODE", text)
		if m, err := admissionhttp.ModeFromEnv(); m != want || err != nil {
			t.Errorf("%q: %v %v", text, m, err)
		}
	}
	t.Setenv("SPILLWAY_MODE", "dry")
	if m, err := admissionhttp.ModeFromEnv(); m != limiter.Enforce || err == nil {
		t.Errorf("%v %v", m, err)
	}
	if _, err := admissionhttp.New(admissionhttp.Config{}); err == nil {
		t.Error("New takes a mode that does not exist")
	}
	before := slog.Default()
	defer slog.SetDefault(before)
	var told strings.Builder
	slog.SetDefault(slog.New(slog.NewTextHandler(&told, nil)))
	if w := get(admissionhttp.Protect(ok), "/"); w.Code != 200 || !strings.Contains(told.String(), "use off, dryrun or enforce") {
		t.Errorf("%d, told %q", w.Code, &told)
	}
}

// Code outside sees the values that a router and a form write into a copy of the request.
func TestACopyOfTheRequestLosesNothing(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		panic("a bug")
	})
	h := admissionhttp.WithPriority(spillway.High, middleware(t, admissionhttp.Config{Limiter: one(t), Hold: true})(mux))
	r := httptest.NewRequest(http.MethodPost, "/upload/7",
		strings.NewReader("--x\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\nlong\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	func() {
		defer func() { _ = recover() }()
		h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	if r.Pattern != "POST /upload/{id}" || r.MultipartForm == nil {
		t.Fatalf("%q %v", r.Pattern, r.MultipartForm)
	}
	_ = r.MultipartForm.RemoveAll()
}
