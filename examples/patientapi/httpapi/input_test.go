package httpapi

import (
	"net/url"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/route"
)

func ask(email, org, rest string) string {
	return "/api/v1/clinicians?" + url.Values{"email": {email}, "org": {org}}.Encode() + rest
}

// Bad input is answered with the name of what is bad, costs no slot, and is
// repeated nowhere.
func TestBadInputNamesItsField(t *testing.T) {
	s := serve(t, patterns.Limiter, patterns.Config{}, 0)
	const email, org, batch = "secret@org01.example", "Secret Surgery", "/api/v1/patients:batch"
	query := func(name string) route.Fault { return route.Fault{In: "query", Parameter: name} }
	id, at := route.Fault{In: "path", Parameter: "id"}, func(pointer string) route.Fault { return route.Fault{Pointer: pointer} }
	ids := func(n int) string { return `{"ids":["P000001"` + strings.Repeat(`,"P000001"`, n-1) + `]}` }
	for _, c := range []struct {
		path, body string
		want       route.Fault
	}{
		{"/api/v1/patients/secret", "", id},
		{"/api/v1/patients/P000001?secret=1", "", query("")},
		{"/api/v1/patients?id=", "", query("id")},
		{"/api/v1/patients?id=P000001&id=P000002", "", query("id")},
		{"/api/v1/patients?id=P1;secret", "", query("")},
		{ask("secret", org, ""), "", query("email")},
		{ask(strings.Repeat("secret", 99)+"@x", org, ""), "", query("email")},
		{ask(email, org, "&email=secret@x"), "", query("email")},
		{ask(email, "secret\xff", ""), "", query("org")},
		{ask(email, org, "&org=secret"), "", query("org")},
		{ask(email, org, "&cache=secret"), "", query("cache")},
		{"/api/v1/clinicians?email=a@b&org=%zz", "", query("org")},
		{batch, `{"ids":[`, at("#/ids/0")},
		{batch, `{"ids":["P000001"],"secret":1}`, at("#")},
		{batch, ids(1) + ids(1), at("#")},
		{batch, `{}`, at("#/ids")},
		{batch, `{"ids":[]}`, at("#/ids")},
		{batch, ids(MaxBatch + 1), at("#/ids")},
		{batch, `{"ids":["P000001","secret"]}`, at("#/ids/1")},
	} {
		method, header := "GET", []string(nil)
		if c.body != "" {
			method, header = "POST", jsonBody
		}
		a := s.do(t, method, c.path, c.body, header...)
		p := problemIn(t, a, 400, "invalid-request")
		named := false
		for _, f := range p.Errors {
			named = named || f.In == c.want.In && f.Parameter == c.want.Parameter && f.Pointer == c.want.Pointer && f.Detail != ""
		}
		if !named || strings.Contains(strings.ToLower(a.body), "secret") {
			t.Errorf("%s %s: %s", c.path, c.body, a.body)
		}
	}
	if o := s.runner.Stats(); o.Offered != 0 || strings.Contains(strings.ToLower(s.log.String()), "secret") {
		t.Errorf("offered %d, logged %s", o.Offered, s.log)
	}
	if a := s.do(t, "POST", batch, ids(MaxBatch), jsonBody...); a.status != 200 {
		t.Errorf("a batch of %d: %d %s", MaxBatch, a.status, a.body)
	}
	if a := s.do(t, "GET", ask("a@b", strings.Repeat("é", 200), ""), ""); a.status != 200 {
		t.Errorf("a long name: %d %s", a.status, a.body)
	}
}
