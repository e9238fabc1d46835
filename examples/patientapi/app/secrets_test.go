package app

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/redistest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/token"
	"github.com/spillway-go/spillway/internal/await"
)

// hidden are texts that must be nowhere, by what they are.
type hidden map[string]string

// known are the forms of texts that were looked for before.
var known sync.Map

// forms are what a text may look like where it has leaked: as it is, escaped for a URL,
// in hexadecimal digits, and in base64 wherever it begins in what was encoded.
func forms(secret string) []string {
	if all, found := known.Load(secret); found {
		return all.([]string)
	}
	digits := hex.EncodeToString([]byte(secret))
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), digits, strings.ToUpper(digits)}
	for before := range 3 {
		// The characters at both ends also depend on what is around.
		from, to := (8*before+5)/6, 8*(before+len(secret))/6
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, encoding.EncodeToString(append(make([]byte, before), secret...))[from:to])
		}
	}
	slices.Sort(all)
	all = slices.Compact(all) // most texts are the same in several of them
	known.Store(secret, all)
	return all
}

// in returns which of them are in a text, compressed or not.
func (h hidden) in(text string) (found []string) {
	if unpacked, err := gzip.NewReader(strings.NewReader(text)); err == nil {
		if plain, err := io.ReadAll(unpacked); err == nil {
			text += string(plain)
		}
	}
	for what, secret := range h {
		if slices.ContainsFunc(forms(secret), func(form string) bool { return strings.Contains(text, form) }) {
			found = append(found, what)
		}
	}
	return found
}

// nowhere fails the test if one of them is in a text.
func (h hidden) nowhere(t *testing.T, where, text string) {
	t.Helper()
	if found := h.in(text); found != nil {
		t.Errorf("%s: there is %q in it", where, found)
	}
}

// about is what nobody may learn of a patient from a log or a page.
func about(n int) hidden {
	if h, found := people.Load(n); found {
		return h.(hidden)
	}
	var p patientapi.Patient
	patientapi.Generator{Seed: 1}.Patient(n, &p)
	h := hidden{
		p.ID: p.ID, p.ID + "'s name": p.Name.Given + " " + p.Name.Family, p.ID + "'s family": p.Name.Family, p.ID + "'s birth date": p.BirthDate, p.ID + "'s phone": p.Phone,
		p.ID + "'s street": p.Address.Street, p.ID + "'s number": p.Identifiers[0].Value, p.ID + "'s policy": p.Insurance.Policy,
	}
	people.Store(n, h)
	return h
}

// people are the patients that were asked about before.
var people sync.Map

// confidential is a service with a secret of each kind.
type confidential struct {
	cmd      Command
	secrets  hidden
	good     string         // a token that opens all patients
	bad      []string       // headers with tokens that are not
	breaking []func() error // what it needs is taken from it
	records  func(*testing.T) string
	spans    *collector
}

// collector takes spans, as they are sent.
type collector struct {
	mu   sync.Mutex
	text []string
}

// ServeHTTP implements http.Handler.
func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, r.URL.String(), string(body)) // its header has the key of the collector
}

// watched fails the test if a span tells, or if there is none.
func (c *confidential) watched(t *testing.T) {
	t.Helper()
	c.spans.mu.Lock()
	defer c.spans.mu.Unlock()
	if len(c.spans.text) == 0 {
		t.Error("there are no spans")
	}
	for _, text := range c.spans.text {
		c.secrets.nowhere(t, "the spans", text)
		about(7).nowhere(t, "the spans", text)
	}
}

// write returns a file with that text.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func newConfidential(t *testing.T) *confidential {
	t.Helper()
	pageKey := make([]byte, 32)
	rand.Read(pageKey)
	c := &confidential{cmd: quick(), secrets: hidden{"audit key": rand.Text(), "page key": string(pageKey), "page key in digits": hex.EncodeToString(pageKey)}}
	c.cmd.Auth.DevelopmentKeys, c.cmd.Admin.Addr = t.TempDir(), "127.0.0.1:0"
	c.cmd.Audit = AuditFlags{Mode: auditOn, DB: filepath.Join(t.TempDir(), "audit.db"), KeyFile: write(t, c.secrets["audit key"])}
	c.cmd.FHIR.PageKeyFile = write(t, c.secrets["page key in digits"])
	c.cmd.Store.Kind, c.cmd.Store.DB = sqliteStore, filepath.Join(t.TempDir(), "patients.db")
	c.records = func(t *testing.T) string {
		text, err := os.ReadFile(c.cmd.Audit.DB)
		require.NoError(t, err)
		log, _ := os.ReadFile(c.cmd.Audit.DB + "-wal")
		return string(text) + string(log)
	}
	c.spans = new(collector)
	server := httptest.NewServer(c.spans)
	t.Cleanup(server.Close)
	c.cmd.Traces.Endpoint, c.secrets["key of the collector"] = server.URL, collectorKey
	c.tokens(t)
	return c
}

// tokens makes the development key, and tokens of all kinds.
func (c *confidential) tokens(t *testing.T) {
	t.Helper()
	signer, err := token.Development(c.cmd.Auth.DevelopmentKeys)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(c.cmd.Auth.DevelopmentKeys, "development-key.pem"))
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	private, err := parsed.(*ecdsa.PrivateKey).Bytes()
	require.NoError(t, err)
	c.secrets["development key"] = string(private)
	c.secrets["development key's file"] = strings.Split(string(text), "\n")[1]
	foreign, err := token.NewSigner()
	require.NoError(t, err)
	mint := func(name string, s *token.Signer) string {
		made, err := s.Mint(token.Grant{Role: access.Clinician, Lifetime: time.Hour})
		require.NoError(t, err)
		c.secrets[name] = made[strings.LastIndex(made, ".")+1:] // the signature: what makes it worth having
		return made
	}
	c.good = mint("good token", signer)
	for name, made := range map[string]string{
		"foreign token": mint("foreign token", foreign), "cut token": mint("cut token", signer)[1:], "no token": rand.Text() + rand.Text(),
		"oversize token": strings.Repeat(rand.Text(), 9<<10/26), "enormous token": strings.Repeat(rand.Text(), 40<<10/26), "two words": rand.Text() + " " + rand.Text(),
	} {
		if c.secrets[name] == "" {
			c.secrets[name] = made[:26]
		}
		c.bad = append(c.bad, "Bearer "+made)
	}
	c.secrets["basic password"] = rand.Text()
	c.bad = append(c.bad, "Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+c.secrets["basic password"])))
}

// far puts the patients and the records into PostgreSQL, and clinicians into Redis, each
// behind a password.
func (c *confidential) far(t *testing.T) {
	t.Helper()
	database := postgrestest.New(t, 0)
	_, c.secrets["password of the database"] = withoutPassword(t, database.URL)
	c.cmd.Store.Kind, c.cmd.Audit.DB = database.URL, ""
	c.records = func(t *testing.T) string { return dump(t, database.URL) }

	addr := redistest.Addr(t)
	client, user, password := redistest.Client(t, addr), "patientapi-"+rand.Text(), rand.Text()
	require.NoError(t, client.Do(t.Context(), "ACL", "SETUSER", user, "on", ">"+password, "~*", "+@all").Err())
	revoke := func() error { return client.Do(context.Background(), "ACL", "DELUSER", user).Err() }
	t.Cleanup(func() { _ = revoke() })
	c.secrets["password of the cache"] = password
	c.cmd.Store.Seed = 1
	c.cmd.Cache.URL, c.cmd.Cache.TTL, c.cmd.Cache.Timeout = "redis://"+user+":"+password+"@"+addr, time.Second, time.Second
	c.breaking = []func() error{revoke, func() error { return database.Drop(context.Background()) }}
}

// dump is all that is in the records in PostgreSQL.
func dump(t *testing.T, address string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var all strings.Builder
	for _, table := range []string{"audit_records", "audit_head"} {
		rows, err := conn.Query(t.Context(), "SELECT row_to_json(r)::text FROM "+table+" r")
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		all.WriteString(strings.Join(lines, "\n"))
	}
	return all.String()
}

// visits are requests of every kind that tell of people, or would.
func visits(base string) (all []*http.Request) {
	var p patientapi.Patient
	patientapi.Generator{Seed: 1}.Patient(7, &p)
	get := func(path string) {
		r, err := http.NewRequest("GET", base+path, nil)
		if err != nil {
			panic(err)
		}
		all = append(all, r)
	}
	post := func(path, kind, body string) {
		r, err := http.NewRequest("POST", base+path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Content-Type", kind)
		all = append(all, r)
	}
	const form, object = "application/x-www-form-urlencoded", "application/json"
	name, born, street := url.QueryEscape(p.Name.Family), p.BirthDate, url.QueryEscape(p.Address.Street)
	for _, path := range []string{
		"/api/v1/patients/P000007", "/api/v1/patients?id=P000007", "/api/v1/patients/P999999", "/api/v1/patients/" + name, "/api/v1/patients?id=" + born, "/api/v1/patients?" + name + "=" + street,
		"/api/v1/clinicians?email=" + url.QueryEscape(p.Physician.Email) + "&org=" + url.QueryEscape(p.Physician.Organisation), "/api/v1/clinicians?email=" + name + "&org=" + street,
		"/fhir/Patient/P000007", "/fhir/Patient/P000007/$everything", "/fhir/Patient?name=" + name, "/fhir/Patient?birthdate=" + born, "/fhir/Patient?birthdate=eq" + born + "x", "/fhir/Patient?address=" + street,
		"/fhir/Patient?identifier=" + p.Identifiers[0].Value, "/fhir/Observation?patient=P000007", "/fhir/Observation/P000007-o1", "/fhir/MedicationRequest?patient=P000007", "/fhir/" + name, "/" + name + "?" + born,
	} {
		get(path)
	}
	post("/api/v1/patients:batch", object, `{"ids":["P000007"]}`)
	post("/api/v1/patients:batch", object, `{"ids":["`+p.Name.Family+`"],"`+p.Phone+`":1}`)
	post("/api/v1/patients:batch", object, p.Name.Family)
	post("/fhir/Patient/_search", form, "name="+name+"&_count=1")
	post("/fhir/Patient/_search", form, "birthdate="+born+"&_count=1")
	post("/fhir/Patient/_search", form, "birthdate=ge1900&_count=1")
	post("/fhir/Patient/_search", form, "address="+street+"&birthdate="+name)
	post("/fhir/Observation/_search", form, "patient=P000007&_count=1")
	return all
}

// sent is what came back for one request, its headers apart.
func sent(t *testing.T, r *http.Request, authorization string) (status int, header, body string) {
	t.Helper()
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r.WithContext(t.Context()))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil && resp.StatusCode == 200 {
		text = append(text, err.Error()...) // an export that was broken off
	}
	return resp.StatusCode, fmt.Sprint(resp.Header), string(text)
}

// links are those of a bundle.
func links(t *testing.T, body string) string {
	t.Helper()
	var bundle struct{ Link []struct{ URL string } }
	_ = json.Unmarshal([]byte(body), &bundle) // what is no bundle has none
	return fmt.Sprint(bundle.Link)
}

// visited makes all visits with that header, and looks through what comes back.
func (c *confidential) visited(t *testing.T, base, authorization string) {
	t.Helper()
	for _, r := range visits(base) {
		where := r.Method + " " + r.URL.Path
		status, header, body := sent(t, r, authorization)
		c.secrets.nowhere(t, where, header+body)
		about(7).nowhere(t, where+"'s header", header)
		switch {
		case status >= 400:
			about(7).nowhere(t, where+"'s refusal", body)
		case r.Method == "POST":
			about(7).nowhere(t, where+"'s links", links(t, body))
		}
	}
}

var looking sync.Mutex

// looked looks through all pages, of both listeners.
func (c *confidential) looked(t *testing.T, r *running) {
	t.Helper()
	looking.Lock() // a process takes one profile at a time
	defer looking.Unlock()
	people := about(7)
	for _, path := range []string{
		"/metrics", "/health", "/livez", "/readyz", "/debug/spillway/", "/debug/spillway/?format=json", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol?0x1",
		"/debug/pprof/heap", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1", "/debug/pprof/goroutine", "/debug/pprof/goroutine?debug=1", "/debug/pprof/goroutine?debug=2",
		"/debug/pprof/block?debug=1", "/debug/pprof/mutex?debug=1", "/debug/pprof/threadcreate?debug=1", "/debug/pprof/trace?seconds=0.1", "/nowhere",
	} {
		req, err := http.NewRequest("GET", "http://"+r.admin+path, nil)
		require.NoError(t, err)
		_, header, body := sent(t, req, "Bearer "+c.good)
		c.secrets.nowhere(t, path, header+body)
		people.nowhere(t, path, header+body)
	}
	for _, path := range []string{"/", "/openapi.json", "/livez", "/readyz", "/fhir/metadata", "/fhir", "/nowhere?access_token=" + c.good} {
		req, err := http.NewRequest("GET", "http://"+r.addr+path, nil)
		require.NoError(t, err)
		_, header, body := sent(t, req, "")
		c.secrets.nowhere(t, path, header+body)
		people.nowhere(t, path, header+body)
	}
}

// lead leads a service through its life.
func (c *confidential) lead(t *testing.T) {
	t.Helper()
	r := start(t, c.cmd)
	base := "http://" + r.addr
	c.visited(t, base, "Bearer "+c.good)
	for _, header := range append(c.bad, "") {
		c.visited(t, base, header)
	}
	c.looked(t, r)
	c.secrets.nowhere(t, "the records", c.records(t))
	for _, breaks := range c.breaking {
		require.NoError(t, breaks())
		c.visited(t, base, "Bearer "+c.good)
		c.looked(t, r)
	}
	r.stop()
	report, err := io.ReadAll(r.lines)
	require.NoError(t, err)
	await.Receive(t, "the command ends", r.ended)
	if r.err != nil {
		c.secrets.nowhere(t, "the error", r.err.Error())
	}
	c.watched(t)
	for where, text := range map[string]string{"the report": string(report), "the log": r.stderr.String()} {
		c.secrets.nowhere(t, where, text)
		about(7).nowhere(t, where, text)
	}
	if !strings.Contains(r.stderr.String(), "tokens were not accepted") {
		t.Errorf("the log is not that of this life:\n%s", &r.stderr)
	}
}

func TestSecretsAndPeopleAreNowhere(t *testing.T) {
	t.Parallel()
	t.Run("near", func(t *testing.T) {
		t.Parallel()
		c := newConfidential(t)
		c.breaking = []func() error{func() error { return os.Truncate(c.cmd.Store.DB, 0) }}
		c.lead(t)
	})
	t.Run("far", func(t *testing.T) {
		t.Parallel()
		c := newConfidential(t)
		c.far(t)
		c.lead(t)
	})
}
