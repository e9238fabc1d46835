package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/token"
	"github.com/spillway-go/spillway/limiter"
)

// injections are texts that mean something to a database, a file system, a shell, a
// template or a log.
var injections = []string{
	// ends of texts, and conditions that hold
	`'`, `"`, `''`, `\'`, `'"`, `')`, `'))--`, `' OR '1'='1`, `' OR 1=1--`, `" OR "1"="1`, `') OR ('1'='1`, `P000007' OR '1'='1`, `P000007'--`, `P000007' AND '1'='2`, `%' OR name LIKE '%`, `0 OR 1=1`, `1=1`,
	// more statements, and more rows
	`'; DROP TABLE patients; --`, `"; DELETE FROM patients; --`, `1; UPDATE patients SET family = 'x'`, `'; TRUNCATE patients CASCADE; --`, `' UNION SELECT * FROM patients --`, `' UNION ALL SELECT NULL,NULL,NULL--`, `'; ATTACH DATABASE '/tmp/x' AS x; --`, `'; PRAGMA writable_schema = 1; --`,
	`'; COPY patients TO PROGRAM 'id'; --`, `' || (SELECT current_user) || '`, `$$; SELECT 1; $$`, `$1`, `$2::text`, `?1`, `:id`, `@p1`, `E'\x27'`, `U&'\0027'`, `'/**/OR/**/1=1#`, `/*`, `*/`, `--`, `;`,
	// time and errors
	`' AND pg_sleep(5)--`, `'; SELECT pg_sleep(5); --`, `' AND 1=CAST((SELECT version()) AS int)--`, `' AND randomblob(1000000000)--`, `' AND load_extension('x')--`, `1/0`,
	// patterns
	`%`, `_`, `%%%`, `P______`, `P00000%`, `[A-Z]*`, `*`, `.*`, `\`, `\\`, `\%`, `ſ`, `İ`, `K`,
	// paths
	`../../../../etc/passwd`, `..\..\windows\win.ini`, `/etc/passwd`, `file:///etc/passwd`, `....//....//etc/passwd`, `%2e%2e%2f`, `..%c0%af`, `P000007/../P000008`, `P000007%00`, `patients.db`, `~`, `.`, `..`,
	// others
	"P000007\x00", "\x00", "a\r\nX-Injected: yes", "a\nlevel=ERROR msg=forged", "\xff\xfe", "\u202eP700000P", "\ufeffP000007", "Ｐ000007", "P00000７", `{{7*7}}`, `${jndi:ldap://x/}`, "`id`", `$(id)`, `; id`, `| id`, `<script>`, `{"$gt":""}`, `P000007,P000008`, `P000007 P000008`, `*)(uid=*`, `' or count(/*)=1 or '`, strings.Repeat("'", 90),
}

const (
	formType   = "application/x-www-form-urlencoded"
	objectType = "application/json"
)

// places are the requests that have a text in each place that takes one.
func places(text string) (all []func(base string) (*http.Request, error)) {
	in := func(method, path, kind, body string, header ...string) {
		all = append(all, func(base string) (*http.Request, error) {
			r, err := http.NewRequest(method, base+path, strings.NewReader(body))
			if err != nil {
				return nil, err
			}
			if kind != "" {
				r.Header.Set("Content-Type", kind)
			}
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			return r, nil
		})
	}
	segment, value := url.PathEscape(text), url.QueryEscape(text)
	for _, path := range []string{"/api/v1/patients/%s", "/api/v1/%s", "/fhir/Patient/%s", "/fhir/Observation/%s", "/fhir/MedicationRequest/%s", "/fhir/Observation/P000007-o%s", "/fhir/Patient/%s/$everything", "/fhir/%s/P000007", "/%s"} {
		in("GET", fmt.Sprintf(path, segment), "", "")
	}
	const by = "email=a%40b.example&org=c"
	for _, query := range []string{"id=%s", "id=P000007&%s=x"} {
		in("GET", "/api/v1/patients?"+fmt.Sprintf(query, value), "", "")
	}
	for _, query := range []string{"email=%s&org=c", "email=a%%40b.example&org=%s", "email=%s%%40b.example&org=c", by + "&cache=%s", by + "&%s=x"} {
		in("GET", "/api/v1/clinicians?"+fmt.Sprintf(query, value), "", "")
	}
	kinds := map[string][]string{"Patient": {"_id", "identifier", "name", "birthdate", "_lastUpdated", "_count", "_page", "_format"}, "Observation": {"patient", "code", "_count", "_page"}, "MedicationRequest": {"patient", "_page"}}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, name := range kinds[kind] {
			pairs := name + "=" + value
			if kind != "Patient" && name != "patient" && name != "_page" {
				pairs = "patient=P000007&" + pairs
			}
			in("GET", "/fhir/"+kind+"?"+pairs, "", "")
			in("POST", "/fhir/"+kind+"/_search", formType, pairs)
		}
		in("GET", "/fhir/"+kind+"?"+value+"=x", "", "", "Prefer", "handling=lenient")
	}
	in("GET", "/fhir/Patient?identifier=urn:patientapi:mrn%7C"+value, "", "")
	in("GET", "/fhir/Patient?birthdate=ge"+value, "", "")
	quoted := fmt.Sprintf("%q", text)
	for _, body := range []string{`{"ids":[` + quoted + `]}`, `{"ids":["P000007",` + quoted + `]}`, `{` + quoted + `:["P000007"]}`, quoted, text} {
		in("POST", "/api/v1/patients:batch", objectType, body)
	}
	for _, name := range []string{"X-Request-Id", "Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since", "Prefer", "Cookie", "User-Agent", "Referer", "Traceparent", "Tracestate", "Baggage", "X-Forwarded-For", "Content-Type"} {
		in("GET", "/fhir/Patient/P000007", "", "", name, text)
	}
	in("GET", "/api/v1/patients/P000007", "", "", "Authorization", "Bearer "+text)
	return all
}

// varying is what two answers to one question may differ in.
var varying = regexp.MustCompile(`"request_id":"[^"]*"|_page=[A-Za-z0-9_-]+|http://127\.0\.0\.1:[0-9]+`)

// said is the answer to a request: its status and its body. Requests that the client does
// not send are none.
func said(t *testing.T, addr, bearer string, make func(string) (*http.Request, error)) string {
	t.Helper()
	r, err := make("http://" + addr)
	if err != nil {
		return ""
	}
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := http.DefaultTransport.RoundTrip(r.WithContext(t.Context()))
	if err != nil && (strings.Contains(err.Error(), "invalid header") || strings.Contains(err.Error(), "invalid control character")) {
		return ""
	}
	if err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 500 || resp.Header.Get("X-Injected") != "" {
		t.Errorf("%s %s: %d %v %v %.300s", r.Method, r.URL, resp.StatusCode, resp.Header, err, body)
	}
	return fmt.Sprint(resp.StatusCode, " ", varying.ReplaceAllString(string(body), ""))
}

// everybody is an export of all that is known.
func everybody(t *testing.T, addr string) string {
	t.Helper()
	return said(t, addr, tokenOf(token.Grant{Role: access.ExportJob}), func(base string) (*http.Request, error) {
		return http.NewRequest("GET", base+"/fhir/Patient/$everything", nil)
	})
}

// injected asks a service: each text is in each place if every is 1, or in one of so many,
// which are others for the next text. What it finds must be what a plain one finds, which
// keeps its patients in memory and knows no language that could be injected.
func injected(t *testing.T, c Command, every int) *running {
	t.Helper()
	memory := quick()
	memory.Pattern.Mode, c.Pattern.Mode = limiter.Off, limiter.Off
	plain, r := start(t, memory), start(t, c)
	bearer, before := tokenOf(token.Grant{Role: access.Clinician}), everybody(t, r.addr)
	if before != everybody(t, plain.addr) || !strings.Contains(before, `"P000100"`) {
		t.Fatalf("the services do not know the same people: %.300s", before)
	}
	texts := make(chan int)
	var clients sync.WaitGroup
	for range 12 { // whose records share commits
		clients.Go(func() {
			for n := range texts {
				text := injections[n]
				for i, place := range places(text) {
					if (i+n)%every != 0 {
						continue
					}
					got := said(t, r.addr, bearer, place)
					if !strings.HasPrefix(got, "200 ") {
						continue
					}
					if want := said(t, plain.addr, bearer, place); want != got {
						asked, _ := place("")
						t.Errorf("%q in %s %s:\n got %.500s\nwant %.500s", text, asked.Method, asked.URL, got, want)
					}
				}
			}
		})
	}
	for n := range injections {
		texts <- n
	}
	close(texts)
	clients.Wait()
	if everybody(t, r.addr) != before {
		t.Error("the patients are not those of before")
	}
	return r
}

// unbroken fails the test if the records of a service are not whole.
func unbroken(t *testing.T, c VerifyCommand, least int) {
	t.Helper()
	var out bytes.Buffer
	var n int
	if err := c.Run(t.Context(), &out, io.Discard); err != nil {
		t.Fatalf("%v %s", err, &out)
	}
	if _, err := fmt.Sscanf(out.String(), "%d records", &n); err != nil || n < least {
		t.Errorf("%s", &out)
	}
}

// some is the share of the places in which the gate has each text: one of so many.
const some = 16

func TestNothingIsInjectedIntoSQLite(t *testing.T) {
	t.Parallel()
	injectedIntoSQLite(t, some)
}

func injectedIntoSQLite(t *testing.T, every int) {
	t.Helper()
	c := quick()
	c.Store.Kind, c.Store.DB = sqliteStore, filepath.Join(t.TempDir(), "patients.db")
	c.Audit = AuditFlags{Mode: auditOn, DB: filepath.Join(t.TempDir(), "audit.db")}
	r := injected(t, c, every)
	r.end(t)
	if strings.Contains(r.stderr.String(), `"msg":"forged"`) || strings.Contains(r.stderr.String(), "\nlevel=ERROR") {
		t.Errorf("a line of the log is not ours:\n%s", &r.stderr)
	}
	unbroken(t, VerifyCommand{DB: c.Audit.DB}, 1000/every)
}

func TestNothingIsInjectedIntoPostgres(t *testing.T) {
	t.Parallel()
	injectedIntoPostgres(t, some)
}

func injectedIntoPostgres(t *testing.T, every int) {
	t.Helper()
	database := postgrestest.New(t, 0)
	tables := func() (all []string) {
		conn, err := pgx.Connect(t.Context(), database.URL)
		require.NoError(t, err)
		defer conn.Close(context.WithoutCancel(t.Context()))
		rows, err := conn.Query(t.Context(), "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1")
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		require.NoError(t, err)
		return all
	}
	c := quick()
	c.Store.Kind = database.URL
	c.Audit = AuditFlags{Mode: auditOn}
	first := start(t, c) // makes the tables
	if _, err := first.report(t); err != nil {
		t.Fatal(err)
	}
	before := tables()
	if _, err := injected(t, c, every).report(t); err != nil {
		t.Error(err)
	}
	if after := tables(); len(before) < 5 || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("tables were %v, and are %v", before, after)
	}
	unbroken(t, VerifyCommand{Store: database.URL}, 1000/every)
}
