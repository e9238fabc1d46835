package app

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/cache/redis"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/redistest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// askFor returns the path that asks for clinician n of a seed.
func askFor(seed uint64, n int) (path string, c patientapi.Clinician) {
	c = patientapi.Generator{Seed: seed}.Clinician(n)
	return "/api/v1/clinicians?" + url.Values{"email": {c.Email}, "org": {c.Organisation}}.Encode(), c
}

// expect asks and compares; missing is what the answer should lack.
func (r *running) expect(t *testing.T, path string, c patientapi.Clinician, missing string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(asked(t.Context(), "http://"+r.addr+path))
	require.NoError(t, err)
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	partial := `"partial":[]`
	if missing != "" {
		partial = `"partial":["` + missing + `"]`
	}
	if resp.StatusCode != 200 || resp.Header.Get("Partial-Answer") != missing || strings.Count(body.String(), c.Email) != 1 || !strings.Contains(body.String(), partial) {
		t.Errorf("%d, Partial-Answer %q, %s; want %s once and %s", resp.StatusCode, resp.Header.Get("Partial-Answer"), &body, c.Email, partial)
	}
}

func TestRedisRemembersForTheNextServiceToo(t *testing.T) {
	addr, c := redistest.Addr(t), quick()
	c.Cache.URL = "redis://" + addr + redistest.Patient
	c.Store.Seed = uint64(time.Now().UnixNano()) // nobody else's, and part of the keys
	t.Cleanup(func() { redistest.Remove(t, addr, redis.DefaultPrefix+strconv.FormatUint(c.Store.Seed, 10)+":") })
	path, who := askFor(c.Store.Seed, 1)
	first := start(t, c)
	first.expect(t, path, who, "")
	if report, err := first.report(t); err != nil || report.Clinicians.Misses != 1 || report.Clinicians.Unkept != 0 {
		t.Errorf("%+v, %v", report.Clinicians, err)
	}
	second := start(t, c)
	for range 3 {
		second.expect(t, path, who, "")
	}
	second.expect(t, path+"&cache=false", who, "")
	report, err := second.report(t)
	if s := report.Clinicians; err != nil || s.Lookups != 4 || s.Hits != 3 || s.Misses+s.Failures+s.Unkept != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if log := second.stderr.String(); strings.Count(log, "\n") != 1 || !strings.HasPrefix(log, "development keys: ") {
		t.Errorf("nothing went wrong, but the log says %s", log)
	}
}

func TestServiceStartsThoughRedisIsDown(t *testing.T) {
	c := quick()
	c.Cache.URL = "redis://127.0.0.1:1"
	path, who := askFor(c.Store.Seed, 1)
	r := start(t, c)
	if status, _ := r.get(t, "/readyz"); status != 200 {
		t.Errorf("not ready without its cache: %d", status)
	}
	r.expect(t, path, who, "cache")
	r.end(t)
	if !strings.Contains(r.stderr.String(), "answers are partial until it does") {
		t.Errorf("nobody was told at the start: %s", &r.stderr)
	}
	for _, secret := range []string{"@", who.Name.Family, who.Organisation} {
		if strings.Contains(r.stderr.String(), secret) {
			t.Errorf("the log shows %q: %s", secret, &r.stderr)
		}
	}
}

func TestCacheInMemoryIsTheDefaultAndNoneIsAChoice(t *testing.T) {
	for cache, hits := range map[string]uint64{Default().Cache.URL: 1, "none": 0} {
		c := quick()
		c.Cache.URL = cache
		path, who := askFor(c.Store.Seed, 1)
		r := start(t, c)
		r.expect(t, path, who, "")
		r.expect(t, path, who, "")
		report, err := r.report(t)
		if s := report.Clinicians; err != nil || s.Lookups != 2 || s.Hits != hits {
			t.Errorf("%s: %+v, %v", cache, s, err)
		}
	}
}

// Whoever has an account on the machine could read it in the process list.
func TestAPasswordOnTheCommandLineIsRefused(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	c := quick()
	c.Cache.URL = "redis://somebody:hush@127.0.0.1:1/0"
	os.Args = []string{"patientapi", "--cache=" + c.Cache.URL}
	var out bytes.Buffer
	err := c.Run(t.Context(), &out, &out)
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "SPILLWAY_CACHE") || !strings.Contains(err.Error(), "--cache-password-file") ||
		strings.Contains(err.Error()+out.String(), "hush") {
		t.Errorf("%v, wrote %s", err, &out)
	}
	os.Args = []string{"patientapi"} // it came from the environment
	assert.NoError(t, c.check())
}

func TestPasswordFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	c := quick()
	c.Cache.PasswordFile = file
	received := make(chan string, 1)
	fake, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer fake.Close()
	go func() { // what a client that wants to log in says first
		conn, err := fake.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		said := make([]byte, 1000)
		n, _ := conn.Read(said)
		received <- string(said[:n])
	}()
	c.Cache.URL = "redis://somebody@" + fake.Addr().String()
	require.NoError(t, os.WriteFile(file, []byte("hush\n"), 0o600))
	r := start(t, c)
	if said := <-received; !strings.Contains(said, "somebody") || !strings.Contains(said, "\r\nhush\r\n") {
		t.Errorf("the client said %q", said)
	}
	r.end(t)
	if strings.Contains(r.stderr.String(), "hush") {
		t.Errorf("the log shows it: %s", &r.stderr)
	}
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	if err := c.check(); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty file: %v", err)
	}
}
