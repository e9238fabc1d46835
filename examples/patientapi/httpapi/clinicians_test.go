package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/cache/memory"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

// database and cached find clinicians by a function of the test.
type database struct {
	*simulated.Store
	find func(context.Context, patientapi.ClinicianQuery) ([]patientapi.Clinician, error)
}

func (d *database) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	return d.find(ctx, q)
}

type cached struct {
	directory.ClinicianCache
	find func(context.Context) ([]patientapi.Clinician, error) // nil: as the cache within
	uses atomic.Int64
}

func (c *cached) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	c.uses.Add(1)
	if c.find != nil {
		return c.find(ctx)
	}
	return c.ClinicianCache.Clinicians(ctx, q)
}

func (c *cached) Keep(ctx context.Context, q patientapi.ClinicianQuery, found []patientapi.Clinician) error {
	c.uses.Add(1)
	return c.ClinicianCache.Keep(ctx, q, found)
}

// serveClinicians serves a database and a cache. What the cache does not do in an
// hour is never: no test here waits for a timeout.
func serveClinicians(t *testing.T, pattern string) (*server, *database, *cached) {
	t.Helper()
	base, err := simulated.New(people, 1)
	if err != nil {
		t.Fatal(err)
	}
	within, err := memory.New(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { within.Close() })
	db, cache := &database{base, base.Clinicians}, &cached{ClinicianCache: within}
	dir, err := directory.New(directory.Config{Store: db, Cache: cache, CacheTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return serveOver(t, pattern, patterns.Config{}, Config{Clinicians: dir}), db, cache
}

// team returns the address of a team, the path that asks for it, and who is in
// it: at least two.
func team() (path string, members []patientapi.Clinician) {
	by := map[string][]patientapi.Clinician{}
	for n := 1; ; n++ {
		c := patientapi.Generator{Seed: 1}.Clinician(n)
		email := c.Mailboxes()[1]
		by[email] = append(by[email], c)
		if len(by[email]) == 1 {
			continue
		}
		all := by[email]
		for n++; n <= patientapi.Clinicians; n++ {
			if c := (patientapi.Generator{Seed: 1}).Clinician(n); c.Mailboxes()[1] == email {
				all = append(all, c)
			}
		}
		return ask(email, c.Organisation, ""), all
	}
}

func ask(email, org, rest string) string {
	return "/api/v1/clinicians?" + url.Values{"email": {email}, "org": {org}}.Encode() + rest
}

func clinicianBody(partial string, found ...patientapi.Clinician) string {
	b, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	return `{"clinicians":` + string(b) + `,"partial":[` + partial + `]}`
}

func TestCliniciansOfATeamAreFoundUnderEveryPattern(t *testing.T) {
	path, members := team()
	for _, pattern := range patterns.Names() {
		s, _, cache := serveClinicians(t, pattern)
		for range 3 { // from the database, then from both
			a := s.do(t, "GET", path, "")
			if a.status != 200 || a.body != clinicianBody("", members...) || a.header.Get(partialHeader) != "" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %v %s", pattern, a.status, a.header, a.body)
			}
		}
		if n := cache.uses.Load(); n != 4 { // three questions, told once
			t.Errorf("%s: %d uses of the cache", pattern, n)
		}
		if a := s.do(t, "GET", ask("nobody@org01.example", "Weir Road Surgery", ""), ""); a.status != 200 || a.body != `{"clinicians":[],"partial":[]}` {
			t.Errorf("%s: nobody: %d %s", pattern, a.status, a.body)
		}
	}
}

func TestWithoutTheCacheOnRequest(t *testing.T) {
	s, _, cache := serveClinicians(t, patterns.Limiter)
	path, members := team()
	if a := s.do(t, "GET", path+"&cache=false", ""); a.status != 200 || a.body != clinicianBody("", members...) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if n := cache.uses.Load(); n != 0 {
		t.Errorf("%d uses of the cache", n)
	}
	s.do(t, "GET", path+"&cache=true", "")
	if n := cache.uses.Load(); n != 2 {
		t.Errorf("%d uses of the cache with cache=true", n)
	}
}

func TestFailedCacheShowsInHeaderBodyMetricsAndLog(t *testing.T) {
	s, _, cache := serveClinicians(t, patterns.Limiter)
	cache.find = func(context.Context) ([]patientapi.Clinician, error) { return nil, errors.New("down") }
	path, members := team()
	a := s.do(t, "GET", path, "")
	if a.status != 200 || a.body != clinicianBody(`"cache"`, members...) || a.header.Get(partialHeader) != "cache" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	metrics := s.operate(t, "/metrics").body
	if !strings.Contains(metrics, `patientapi_clinician_cache_total{result="failed"} 1`) || strings.Contains(metrics, members[0].Name.Family) {
		t.Errorf("metrics:\n%s", metrics)
	}
}

func TestFailedDatabaseIsAProblemAtOnceThoughTheCacheHangs(t *testing.T) {
	for _, c := range []struct {
		fails  func() error
		status int
		kind   string
	}{
		{func() error { return fmt.Errorf("%w: disk on fire at /var", patientapi.ErrUnavailable) }, 502, "store-unavailable"},
		{func() error { return errors.New("a bug at /var") }, 500, "internal"},
		{func() error { panic("a bug at /var") }, 500, "internal"},
		{func() error { return context.DeadlineExceeded }, 504, "timeout"},
	} {
		s, db, cache := serveClinicians(t, patterns.Limiter)
		hangs := make(chan struct{})
		db.find = func(context.Context, patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
			<-hangs // the cache has been asked
			return nil, c.fails()
		}
		cache.find = func(ctx context.Context) ([]patientapi.Clinician, error) {
			close(hangs)
			<-ctx.Done() // or this test would take an hour
			return nil, ctx.Err()
		}
		path, members := team()
		a := s.do(t, "GET", path, "")
		problemIn(t, a, c.status, c.kind)
		if strings.Contains(a.body, "/var") {
			t.Errorf("shows what is inside: %s", a.body)
		}
		for _, secret := range []string{members[0].Name.Family, members[0].Organisation, "@"} {
			if strings.Contains(s.log.String(), secret) {
				t.Errorf("the log shows %q: %s", secret, s.log)
			}
		}
	}
}

func TestClientWhoLeavesIsNotWaitedFor(t *testing.T) {
	s, db, cache := serveClinicians(t, patterns.Limiter)
	ctx, leave := context.WithCancel(t.Context())
	db.find = func(ctx context.Context, _ patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
		leave()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	cache.find = func(ctx context.Context) ([]patientapi.Clinician, error) { <-ctx.Done(); return nil, ctx.Err() }
	path, _ := team()
	if a, err := s.try(ctx, "GET", path, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v", a.status, err)
	}
	for s.Outcomes().Abandoned != 1 { // once the server has noticed
		if o := s.Outcomes(); o.OK+o.Error+o.Timeout > 0 {
			t.Fatalf("%+v", o)
		}
	}
	db.find = s.store.Clinicians
	cache.find = nil
	if a := s.do(t, "GET", path, ""); a.status != 200 {
		t.Errorf("the next client got %d", a.status)
	}
}

func TestTooManyLookupsOfCliniciansAreRefused(t *testing.T) {
	s, db, _ := serveClinicians(t, patterns.Limiter) // 4 at once, 16 wait
	running, finish := make(chan struct{}), make(chan struct{})
	find := db.find
	db.find = func(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
		running <- struct{}{}
		<-finish
		return find(ctx, q)
	}
	path, _ := team()
	answers := make(chan answered)
	for range 40 {
		go func() {
			a, err := s.try(t.Context(), "GET", path, "")
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	for range 4 {
		<-running
	}
	for range 20 { // 40 less 4 and 16
		problemIn(t, <-answers, 503, "#temporary-reduced-capacity")
	}
	close(finish)
	for range 20 {
		for done := false; !done; {
			select {
			case <-running:
			case a := <-answers:
				done = true
				if a.status != 200 {
					t.Errorf("an admitted one got %d", a.status)
				}
			}
		}
	}
}

func TestIndexLeadsToClinicians(t *testing.T) {
	s, _, _ := serveClinicians(t, patterns.Limiter)
	_, rest, _ := strings.Cut(s.do(t, "GET", "/", "").body, `<pre id="clinicians">`)
	_, rest, _ = strings.Cut(rest, "/api/v1/clinicians?")
	query, _, _ := strings.Cut(rest, "'")
	a := s.do(t, "GET", "/api/v1/clinicians?"+strings.ReplaceAll(query, "&amp;", "&"), "")
	if a.status != 200 || !strings.Contains(a.body, `"id":"C0001"`) {
		t.Errorf("the command for %q gives %d %s", query, a.status, a.body)
	}
}

// What the document allows is a question, and nothing that a client sends is
// blamed on the server.
func FuzzClinicianURL(f *testing.F) {
	s := quiet(f)
	f.Add("someone@org01.example", "Weir Road Surgery", "")
	f.Add("a@b", "c\xff", "&cache=false")
	f.Add("a.b@c.d", "Éire  Ⅳ", "&x=%zz")
	f.Fuzz(func(t *testing.T, email, org, rest string) {
		w := httptest.NewRecorder()
		r := &http.Request{Method: "GET", Header: http.Header{"Authorization": {accesstest.Clinician}}, URL: &url.URL{Path: "/api/v1/clinicians",
			RawQuery: url.Values{"email": {email}, "org": {org}}.Encode() + rest}}
		s.ServeHTTP(w, r.WithContext(t.Context()))
		_, err := patientapi.NewClinicianQuery(email, org)
		if w.Code != 200 && w.Code != 400 || w.Code == 200 && err != nil {
			t.Fatalf("%q %q: %d %s, %v", email, org, w.Code, w.Body, err)
		}
	})
}
