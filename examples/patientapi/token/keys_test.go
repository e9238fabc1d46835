package token

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

var quiet = slog.New(slog.DiscardHandler)

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func rsaKey(t testing.TB, bits int) webKey {
	t.Helper()
	n, err := rand.Prime(rand.Reader, 64)
	require.NoError(t, err)
	n.Lsh(n, uint(bits-64)).SetBit(n, 0, 1) // of that size; it never verifies anything
	return webKey{Type: "RSA", ID: "rsa", N: encoded(n.Bytes()), E: encoded(big.NewInt(65537).Bytes())}
}

func ecKey(t testing.TB) webKey {
	t.Helper()
	var doc struct{ Keys []webKey }
	require.NoError(t, json.Unmarshal(newSigner(t).JWKS(), &doc))
	k := doc.Keys[0]
	k.ID = "ec"
	return k
}

func setOf(keys ...webKey) []byte {
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return text
}

func TestOnlyKeysThatVerifySignaturesAreTaken(t *testing.T) {
	ec, rs := ecKey(t), rsaKey(t, 2048)
	with := func(k webKey, change func(*webKey)) webKey { change(&k); return k }
	for name, c := range map[string]struct {
		keys []webKey
		want int
	}{
		"one of each":          {[]webKey{ec, rs}, 2},
		"what it is good for":  {[]webKey{with(ec, func(k *webKey) { k.Operations, k.Algorithm = []string{"verify"}, "ES256" })}, 1},
		"nothing said":         {[]webKey{with(ec, func(k *webKey) { k.Use, k.Algorithm = "", "" })}, 1},
		"a secret":             {[]webKey{{Type: "oct", ID: "a", Algorithm: "HS256"}}, 0},
		"to encrypt":           {[]webKey{with(ec, func(k *webKey) { k.Use = "enc" })}, 0},
		"of another algorithm": {[]webKey{with(rs, func(k *webKey) { k.Algorithm = "PS256" }), with(ec, func(k *webKey) { k.Algorithm = "RS256" })}, 0},
		"without an id":        {[]webKey{with(ec, func(k *webKey) { k.ID = "" })}, 0},
		"twice":                {[]webKey{ec, ec}, 0},
		"another curve":        {[]webKey{with(ec, func(k *webKey) { k.Curve = "P-384" })}, 0},
		"not on the curve":     {[]webKey{with(ec, func(k *webKey) { k.X = k.Y })}, 0},
		"a short coordinate":   {[]webKey{with(ec, func(k *webKey) { k.X = k.X[:40] })}, 0},
		"small":                {[]webKey{rsaKey(t, 2047)}, 0},
		"huge":                 {[]webKey{rsaKey(t, 8193)}, 0},
		"exponent 1":           {[]webKey{with(rs, func(k *webKey) { k.E = "AQ" })}, 0},
		"nothing":              {nil, 0},
	} {
		if c.keys == nil {
			c.keys = []webKey{}
		}
		keys, err := parseSet(setOf(c.keys...))
		if err != nil || len(keys) != c.want {
			t.Errorf("%s: %v, %v", name, keys, err)
		}
	}
	for _, text := range []string{"", "{}", "[]", "null", `{"keys":null}`, `{"keys":{}}`, `{"keys":[` + strings.Repeat("1,", 100) + `1]}`} {
		if keys, err := parseSet([]byte(text)); err == nil {
			t.Errorf("%.20q: %v", text, keys)
		}
	}
}

// keysOf are keys that are read by a function of the test's.
func keysOf(t *testing.T, read func(context.Context) ([]byte, error)) *Keys {
	t.Helper()
	k := &Keys{read: read, logger: quiet, turn: make(chan struct{}, 1), looked: time.Now()}
	require.NoError(t, k.load(t.Context()))
	return k
}

func TestUnknownKeysAreLookedForNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, set := 0, setOf(ecKey(t))
		k := keysOf(t, func(context.Context) ([]byte, error) { reads++; return set, nil })
		for range 100 {
			if _, ok, _ := k.find(t.Context(), "new"); ok || reads != 1 {
				t.Fatalf("found is %v after %d reads", ok, reads)
			}
		}
		added := ecKey(t)
		added.ID = "new"
		set = setOf(ecKey(t), added)
		time.Sleep(unknownPause)
		for range 100 {
			if _, ok, _ := k.find(t.Context(), "new"); !ok || reads != 2 {
				t.Fatalf("found is %v after %d reads", ok, reads)
			}
		}
	})
}

func TestManyWhoLookAtOneTimeReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		k := keysOf(t, func(context.Context) ([]byte, error) {
			reads.Add(1)
			time.Sleep(time.Second)
			return setOf(ecKey(t)), nil
		})
		time.Sleep(unknownPause)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { k.find(t.Context(), "new") })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		synctest.Wait()
		before := time.Now()
		k.find(ctx, "new")
		if took := time.Since(before); took > time.Millisecond {
			t.Errorf("a caller whose time was up waited for %v", took)
		}
		wg.Wait()
		if n := reads.Load(); n != 2 {
			t.Errorf("%d reads", n)
		}
	})
}

func TestWatchRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ec, rs := setOf(ecKey(t)), setOf(rsaKey(t, 2048))
		began := time.Now()
		k := keysOf(t, func(context.Context) ([]byte, error) {
			if time.Since(began) < period {
				return ec, nil
			}
			return rs, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { k.Watch(ctx) })
		time.Sleep(period)
		synctest.Wait()
		if known := k.now.Load().keys; len(known) != 1 || known["rsa"].public == nil {
			t.Errorf("known are %v", known)
		}
		cancel()
		wg.Wait()
	})
}

// An issuer that answers nonsense for a moment locks nobody out. A set without keys once took the place of
// a good one, and no token was good until the next look.
func TestASetWithoutKeysReplacesNone(t *testing.T) {
	var answer atomic.Pointer[http.HandlerFunc]
	serve := func(status int, text []byte) {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = w.Write(text) })
		answer.Store(&h)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer.Load().ServeHTTP(w, r) }))
	defer web.Close()
	ec, rs := ecKey(t), rsaKey(t, 2048)
	serve(200, setOf(ec, rs))
	var log bytes.Buffer
	k, err := Open(t.Context(), web.URL, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	known := func(id string) bool { _, ok := k.now.Load().keys[id]; return ok }
	weak := rs
	weak.N = encoded(make([]byte, 128))
	for name, c := range map[string]struct {
		status int
		text   []byte
	}{
		"empty":           {200, []byte(`{"keys":[]}`)},
		"none of any use": {200, setOf(webKey{Type: "oct", ID: "ec"}, weak)},
		"garbage":         {200, []byte("<html>")},
		"cut":             {200, setOf(ec, rs)[:40]},
		"a failure":       {500, setOf(ec)},
		"too many":        {200, setOf(make([]webKey, maxKeys+1)...)},
	} {
		before, lines := k.generation(), strings.Count(log.String(), "level=ERROR")
		serve(c.status, c.text)
		k.look(t.Context(), 0)
		if !known("ec") || !known("rsa") || k.generation() != before || !k.Stale() || strings.Count(log.String(), "level=ERROR") != lines+1 {
			t.Errorf("%s: known are ec %v, rsa %v, stale %v\n%s", name, known("ec"), known("rsa"), k.Stale(), &log)
		}
	}
	serve(200, setOf(ec, rs)) // unchanged
	if k.look(t.Context(), 0); k.Stale() || !known("ec") {
		t.Error("the keys that are there again count as old")
	}
	serve(200, setOf(rs))
	if k.look(t.Context(), 0); k.Stale() || known("ec") || !known("rsa") {
		t.Error("a key that was removed is known")
	}
}

func TestOpen(t *testing.T) {
	set := setOf(ecKey(t))
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/good", http.StatusFound) })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxSet+1)) })
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) })
	web := httptest.NewServer(mux)
	defer web.Close()
	file := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(file, set, 0o600))
	for location, want := range map[string]string{
		file:                                "",
		web.URL + "/good":                   "",
		web.URL + "/moved":                  "302",
		web.URL + "/long":                   "more than 256 KiB",
		web.URL + "/empty":                  "no key to verify",
		web.URL + "/none":                   "404",
		file + "x":                          "no such file",
		"http://issuer.example/jwks.json":   "could replace them",
		"http://127.0.0.1.example/jwks":     "could replace them",
		"ftp://127.0.0.1/jwks":              "could replace them",
		"https://me:secret@issuer.example/": "without a password",
		"https:///jwks":                     "without a password",
		"https://127.0.0.1:1/?key=secret":   "refused",
	} {
		k, err := Open(t.Context(), location, nil)
		if want == "" && (err != nil || len(k.now.Load().keys) != 1) {
			t.Errorf("%s: %v", location, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %q", location, err, want)
		}
	}
}

func TestDevelopmentKeysAreMadeOnceAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	signers := make([]*Signer, 8)
	var wg sync.WaitGroup
	for i := range signers {
		wg.Go(func() {
			var err error
			if signers[i], err = Development(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range signers {
		if s == nil || !s.private.Equal(signers[0].private) || s.id != signers[0].id {
			t.Fatal("not all have the same key")
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	name := filepath.Join(dir, entries[0].Name())
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	require.NoError(t, os.Chmod(name, 0o640))
	if _, err := Development(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("others may read it: %v", err)
	}
	for _, text := range []string{"", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		require.NoError(t, errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chmod(name, 0o600)))
		if _, err := Development(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A signer says nothing of its key when it is printed by mistake.
func TestASignerIsNotPrinted(t *testing.T) {
	s := newSigner(t)
	d, err := s.private.Bytes()
	require.NoError(t, err)
	n := new(big.Int).SetBytes(d)
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), slog.AnyValue(s).Resolve().String()} {
		if strings.Contains(text, n.String()) || strings.Contains(text, fmt.Sprintf("%x", d)) || !strings.Contains(text, "redacted") {
			t.Errorf("%s", text)
		}
	}
}

func FuzzParseSet(f *testing.F) {
	f.Add(setOf(ecKey(f), rsaKey(f, 2048)))
	f.Add([]byte(`{"keys":[{"kty":"EC","kid":"a","crv":"P-256","x":"","y":""},1,null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseSet(text)
		for id, k := range keys {
			if public, ok := k.public.(*rsa.PublicKey); err != nil || id == "" || ok != (k.algorithm == rs256) || ok && public.N.BitLen() < minRSABits {
				t.Fatalf("%q: %+v, %v", id, k, err)
			}
		}
	})
}
