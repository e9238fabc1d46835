package httpapi

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/token"
)

const issuer, audience = "https://issuer.example", "https://patients.example"

// object is a JSON object.
type object = map[string]any

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func jsonOf(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// alphabet is that of base64url.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// forger makes tokens by hand, good ones and others. It knows the issuer's keys.
type forger struct {
	ec    *ecdsa.PrivateKey
	rsa   *rsa.PrivateKey
	other *ecdsa.PrivateKey // not the issuer's
}

func newForger(t *testing.T) *forger {
	t.Helper()
	ec, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	other, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rs, err3 := rsa.GenerateKey(rand.Reader, 2048)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	return &forger{ec, rs, other}
}

// signature signs text as the algorithm has it.
func (f *forger) signature(alg string, secret []byte, private crypto.Signer, text string) []byte {
	sum := sha256.Sum256([]byte(text))
	switch key := private.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			panic(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case *rsa.PrivateKey:
		b, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		if alg == "PS256" {
			b, err = rsa.SignPSS(rand.Reader, key, crypto.SHA256, sum[:], nil)
		}
		if err != nil {
			panic(err)
		}
		return b
	}
	if secret == nil {
		return nil
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// token is one with these changes to the header and the claims of a good one; nil takes
// a member away.
func (f *forger) token(header, claims object, secret []byte, private crypto.Signer) string {
	h := object{"alg": "ES256", "kid": "ec", "typ": "JWT"}
	c := object{"iss": issuer, "aud": audience, "sub": "doctor-1", "exp": time.Now().Add(time.Hour).Unix(), "role": "clinician", "scope": "user/*.rs"}
	maps.Copy(h, header)
	maps.Copy(c, claims)
	gone := func(_ string, v any) bool { return v == nil }
	maps.DeleteFunc(h, gone)
	maps.DeleteFunc(c, gone)
	text := b64(jsonOf(h)) + "." + b64(jsonOf(c))
	alg, _ := h["alg"].(string)
	return text + "." + b64(f.signature(alg, secret, private, text))
}

// good is a token of the issuer with other claims.
func (f *forger) good(claims object) string { return f.token(nil, claims, nil, f.ec) }

func jwkEC(id string, k *ecdsa.PrivateKey) object {
	point, err := k.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	return object{"kty": "EC", "crv": "P-256", "kid": id, "x": b64(point[1:33]), "y": b64(point[33:])}
}

func jwkRSA(id string, k *rsa.PrivateKey) object {
	return object{"kty": "RSA", "kid": id, "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
}

func with(o object, name string, value any) object {
	o = maps.Clone(o)
	o[name] = value
	return o
}

// jwks is the issuer's key set: good keys, and others that are no good for tokens.
func (f *forger) jwks() []byte {
	return jsonOf(object{"keys": []object{
		jwkEC("ec", f.ec), jwkRSA("rsa", f.rsa),
		{"kty": "oct", "kid": "secret", "alg": "HS256", "k": b64([]byte("a shared secret"))},
		with(jwkEC("enc", f.ec), "use", "enc"), with(jwkRSA("enc-rsa", f.rsa), "use", "enc"),
		with(jwkRSA("hs", f.rsa), "alg", "HS256"), with(jwkEC("es-as-rs", f.ec), "alg", "RS256"),
		jwkEC("double", f.ec), jwkEC("double", f.other),
		jwkEC("", f.ec),
	}})
}

// publicForms are the ways in which a public key may serve as somebody's secret.
func (f *forger) publicForms() (secrets [][]byte) {
	for _, public := range []any{&f.rsa.PublicKey, &f.ec.PublicKey} {
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			panic(err)
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		secrets = append(secrets, der, text, bytes.TrimSpace(text))
	}
	return append(secrets, jsonOf(jwkRSA("rsa", f.rsa)), f.rsa.N.Bytes(), f.jwks(), nil, []byte{})
}

// attacks are tokens that must not be good, by name.
func (f *forger) attacks() map[string]string {
	header := func(h object) string { return f.token(h, nil, nil, f.ec) }
	head, body, _ := strings.Cut(f.good(nil), ".")
	claims, signature, _ := strings.Cut(body, ".")
	none := func(alg string) string { return f.token(object{"alg": alg}, nil, nil, nil) }
	all := map[string]string{
		"alg none": none("none"), "alg None": none("None"), "alg NONE": none("NONE"), "no alg": header(object{"alg": nil}), "empty alg": none(""),
		"alg none with a signature": f.token(object{"alg": "none"}, nil, nil, f.ec),
		"alg is a list":             header(object{"alg": []string{"ES256"}}),
		"ES256 of the RSA key":      header(object{"kid": "rsa"}),
		"RS256 of the EC key":       f.token(object{"alg": "RS256"}, nil, nil, f.rsa),
		"PS256":                     f.token(object{"alg": "PS256", "kid": "rsa"}, nil, nil, f.rsa),
		"swapped key":               f.token(nil, nil, nil, f.other), "unknown key": header(object{"kid": "stranger"}), "no kid": header(object{"kid": nil}), "empty kid": header(object{"kid": ""}),
		"kid is a path": header(object{"kid": "../../../../dev/null"}), "kid is SQL": header(object{"kid": "ec' OR '1'='1"}), "kid is a command": header(object{"kid": "ec; cat /etc/passwd"}),
		"kid is a number": header(object{"kid": 1}), "kid with NUL": header(object{"kid": "ec\x00"}), "kid is a URL": header(object{"kid": "https://evil.example/jwks"}),
		"jku":                    f.token(object{"jku": "http://127.0.0.1:1/jwks.json", "kid": "mine"}, nil, nil, f.other),
		"jwk":                    f.token(object{"jwk": jwkEC("ec", f.other)}, nil, nil, f.other),
		"crit":                   header(object{"crit": []string{"exp"}}),
		"a secret of the set":    f.token(object{"alg": "HS256", "kid": "secret"}, nil, []byte("a shared secret"), nil),
		"a key to encrypt":       header(object{"kid": "enc"}),
		"a key of two":           header(object{"kid": "double"}),
		"an EC key for RS256":    header(object{"kid": "es-as-rs"}),
		"oversize":               f.good(object{"pad": strings.Repeat("x", token.MaxSize)}),
		"unsigned":               head + "." + claims + ".",
		"without a signature":    head + "." + claims,
		"a signature of zeros":   head + "." + claims + "." + b64(make([]byte, 64)),
		"other claims":           head + "." + b64(jsonOf(object{"role": "clinician"})) + "." + signature,
		"bits that do not count": head + "." + claims + "." + signature[:85] + string(alphabet[strings.IndexByte(alphabet, signature[85])^1]),
		"padded":                 f.good(nil) + "=",
		"two tokens":             f.good(nil) + ", Bearer " + f.good(nil),
		"garbage":                "garbage", "dots": "..", "nothing": "", "NUL": "\x00", "not UTF-8": "\xff\xfe.\xff.\xff",
	}
	all["wrong aud"], all["expired"] = f.good(object{"aud": "https://another.example"}), f.good(object{"exp": time.Now().Add(-time.Hour).Unix()})
	for i, secret := range f.publicForms() {
		for _, kid := range []string{"rsa", "ec"} {
			all["HS256 "+kid+" "+string(rune('a'+i))] = f.token(object{"alg": "HS256", "kid": kid}, nil, secret, nil)
		}
	}
	return all
}

// counted is a store that counts what it is asked.
type counted struct {
	*simulated.Store
	asked atomic.Int64
}

func (s *counted) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	s.asked.Add(1)
	return s.Store.Patient(ctx, id, dst)
}

func (s *counted) Patients(ctx context.Context, ids []string, dst *patientapi.Batch) error {
	s.asked.Add(1)
	return s.Store.Patients(ctx, ids, dst)
}

func (s *counted) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	s.asked.Add(1)
	return s.Store.Clinicians(ctx, q)
}

// overCounted is an API over ten patients, without a network, and its store.
func overCounted(t *testing.T, verifier front.Verifier) (*API, *counted) {
	t.Helper()
	base, err := simulated.New(10, 1)
	require.NoError(t, err)
	store := &counted{Store: base}
	runner, err := patterns.New(patterns.Adaptive, patterns.Config{Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = runner.Drain(context.Background()) })
	return New(Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store, Verifier: verifier}), store
}

// askAs sends a request with that token; empty means without one.
func askAs(h http.Handler, token, method, path, body string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	h.ServeHTTP(w, r)
	return w
}

// requestID is what differs between answers that are the same.
var requestID = regexp.MustCompile(`"request_id":"[^"]*"`)

func told(w *httptest.ResponseRecorder) string {
	return requestID.ReplaceAllString(w.Body.String(), "")
}

// underAttack is an API that believes the forger's issuer.
func underAttack(t *testing.T) (*API, *counted, *forger) {
	t.Helper()
	f := newForger(t)
	file := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(file, f.jwks(), 0o600))
	keys, err := token.Open(t.Context(), file, nil)
	require.NoError(t, err)
	v, err := token.NewVerifier(token.Config{Keys: keys, Issuer: issuer, Audience: audience})
	require.NoError(t, err)
	api, store := overCounted(t, v)
	return api, store, f
}

// answeredAlike checks that w is the one answer to everybody without a good token.
func answeredAlike(t *testing.T, name string, w, first *httptest.ResponseRecorder) {
	t.Helper()
	for _, r := range []*httptest.ResponseRecorder{w, first} {
		r.Header().Del("X-Request-Id")
		r.Header().Del("Content-Length")
	}
	if w.Code != http.StatusUnauthorized || told(w) != told(first) || !maps.EqualFunc(w.Header(), first.Header(), func(a, b []string) bool { return a[0] == b[0] }) {
		t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
	}
}

func TestForgedTokensAreAll401WithoutAHint(t *testing.T) {
	api, store, f := underAttack(t)
	const path = "/api/v1/patients/P000002"
	for name, text := range map[string]string{"ES256": f.good(nil), "RS256": f.token(object{"alg": "RS256", "kid": "rsa"}, nil, nil, f.rsa)} {
		if w := askAs(api, text, "GET", path, ""); w.Code != 200 {
			t.Fatalf("a good token by %s: %d %s", name, w.Code, w.Body)
		}
	}
	store.asked.Store(0)
	first := askAs(api, "", "GET", path, "") // without a token
	if first.Header().Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%v", first.Header())
	}
	for name, text := range f.attacks() {
		r := httptest.NewRequest("GET", path, nil)
		r.Header["Authorization"] = []string{"Bearer " + text}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		answeredAlike(t, name, w, first)
	}
	if n := store.asked.Load(); n > 0 {
		t.Errorf("the store was asked %d times", n)
	}
}

// A token counts in its one place alone: anywhere else it ends up in logs and histories.
func TestATokenElsewhereIsNone(t *testing.T) {
	api, store, f := underAttack(t)
	good := f.good(nil)
	const path = "/api/v1/patients/P000002"
	first := askAs(api, "", "GET", path, "")
	for name, change := range map[string]func(*http.Request){
		"in the query":    func(r *http.Request) { r.URL.RawQuery = "access_token=" + good },
		"in a cookie":     func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "access_token", Value: good}) },
		"another header":  func(r *http.Request) { r.Header.Set("X-Access-Token", good) },
		"for a proxy":     func(r *http.Request) { r.Header.Set("Proxy-Authorization", "Bearer "+good) },
		"two headers":     func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + good, "Bearer " + good} },
		"a bad one first": func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer x", "Bearer " + good} },
		"as Basic":        func(r *http.Request) { r.SetBasicAuth("doctor-1", good) },
		"as DPoP":         func(r *http.Request) { r.Header.Set("Authorization", "DPoP "+good) },
		"without scheme":  func(r *http.Request) { r.Header.Set("Authorization", good) },
		"by a tab":        func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer\t" + good} },
	} {
		r := httptest.NewRequest("GET", path, nil)
		change(r)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		answeredAlike(t, name, w, first)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", path+"?access_token="+good, nil)
	r.Header.Set("Authorization", "Bearer "+good)
	if api.ServeHTTP(w, r); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), good) {
		t.Errorf("twice: %d %s", w.Code, w.Body)
	}
	if n := store.asked.Load(); n > 0 {
		t.Errorf("the store was asked %d times", n)
	}
}
