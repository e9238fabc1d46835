package token

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func newSigner(t testing.TB) *Signer {
	t.Helper()
	s, err := NewSigner()
	require.NoError(t, err)
	return s
}

func verifierOf(t testing.TB, s *Signer) *Verifier {
	t.Helper()
	v, err := s.Verifier()
	require.NoError(t, err)
	return v
}

func mint(t testing.TB, s *Signer, g Grant) string {
	t.Helper()
	if g.Lifetime == 0 {
		g.Lifetime = time.Hour
	}
	text, err := s.Mint(g)
	require.NoError(t, err)
	return text
}

// forge makes a token of the header and the claims of a good one with these changes; nil takes a
// member away.
func forge(t testing.TB, by jwt.SigningMethod, key any, header, claims map[string]any) string {
	t.Helper()
	c := jwt.MapClaims{"iss": DevelopmentIssuer, "aud": DevelopmentAudience, "sub": "doctor-1", "exp": time.Now().Add(time.Hour).Unix(), "role": "clinician", "scope": "user/*.rs"}
	maps.Copy(c, claims)
	gone := func(_ string, v any) bool { return v == nil }
	maps.DeleteFunc(c, gone)
	tok := jwt.NewWithClaims(by, c)
	maps.Copy(tok.Header, header)
	maps.DeleteFunc(tok.Header, gone)
	text, err := tok.SignedString(key)
	require.NoError(t, err)
	return text
}

// signed is a good token of these claims.
func signed(t testing.TB, s *Signer, claims map[string]any) string {
	t.Helper()
	return forge(t, jwt.SigningMethodES256, s.private, map[string]any{"kid": s.id}, claims)
}

func TestAGoodTokenNamesItsHolder(t *testing.T) {
	s := newSigner(t)
	v := verifierOf(t, s)
	for _, g := range []Grant{
		{Role: access.Clinician}, {Role: access.Administrator}, {Role: access.ExportJob},
		{Role: access.Patient, Patient: "P000007"}, {Role: access.Clinician, Scopes: []string{"openid", "user/Patient.r"}},
	} {
		text := mint(t, s, g)
		for range 2 { // the second time it is remembered
			p, err := v.Verify(t.Context(), text)
			scopes := g.Scopes
			if scopes == nil {
				scopes = access.Scopes(g.Role)
			}
			if err != nil || p.Subject == "" || p.Role != g.Role || p.Patient != g.Patient || !slices.Equal(p.Scopes, scopes) {
				t.Errorf("%+v: %+v, %v", g, p, err)
			}
		}
	}
	p, err := v.Verify(t.Context(), signed(t, s, map[string]any{"aud": []string{"elsewhere", DevelopmentAudience}, "patient": "P000007"}))
	if err != nil || p.Patient != "" {
		t.Errorf("several audiences, and a clinician with a patient: %+v, %v", p, err)
	}
}

func TestClaims(t *testing.T) {
	s := newSigner(t)
	v := verifierOf(t, s)
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, c := range map[string]struct {
		change map[string]any
		want   error
	}{
		"as it is":                  {nil, nil},
		"no sub":                    {map[string]any{"sub": nil}, errClaims},
		"a sub of two lines":        {map[string]any{"sub": "a\nb"}, errClaims},
		"a sub written backwards":   {map[string]any{"sub": "a\u202eb"}, errClaims},
		"a sub with nothing to see": {map[string]any{"sub": "a\u200bb"}, errClaims},
		"a sub of another alphabet": {map[string]any{"sub": "dr-Åsa 中村 😀"}, nil},
		"a long sub":                {map[string]any{"sub": strings.Repeat("x", 201)}, errClaims},
		"another iss":               {map[string]any{"iss": DevelopmentIssuer + "/"}, errElsewhere},
		"no aud":                    {map[string]any{"aud": nil}, errClaims},
		"another aud":               {map[string]any{"aud": "someone"}, errElsewhere},
		"no exp":                    {map[string]any{"exp": nil}, errClaims},
		"expired":                   {map[string]any{"exp": at(-time.Minute)}, errTime},
		"just expired":              {map[string]any{"exp": at(-5 * time.Second)}, nil},
		"nbf to come":               {map[string]any{"nbf": at(time.Minute)}, errTime},
		"iat to come":               {map[string]any{"iat": at(time.Minute)}, errTime},
		"exp in quotes":             {map[string]any{"exp": strconv.FormatInt(at(time.Hour), 10)}, errMalformed},
		"no role":                   {map[string]any{"role": nil}, errClaims},
		"another role":              {map[string]any{"role": "root"}, errClaims},
		"two roles":                 {map[string]any{"role": []string{"clinician", "patient"}}, errMalformed},
		"no patient":                {map[string]any{"role": "patient"}, errClaims},
		"not a patient's id":        {map[string]any{"role": "patient", "patient": "P1"}, errClaims},
		"no scope":                  {map[string]any{"scope": nil}, nil}, // it opens nothing
		"Role":                      {map[string]any{"role": "patient", "patient": "P000002", "Role": "clinician"}, errMalformed},
		"Exp":                       {map[string]any{"exp": at(-time.Minute), "Exp": at(time.Hour)}, errMalformed},
		"others' claims":            {map[string]any{"Roles": "root", "https://example.org/Role": "root"}, nil},
		"scope is a list":           {map[string]any{"scope": []string{"user/*.rs"}}, errMalformed},
	} {
		p, err := v.Verify(t.Context(), signed(t, s, c.change))
		if !errors.Is(err, c.want) || (err == nil) != (p.Subject != "") {
			t.Errorf("%s: %+v, %v, want %v", name, p, err, c.want)
		}
	}
}

func TestAClaimIsGivenOnce(t *testing.T) {
	for text, good := range map[string]bool{
		`{"sub":"a","role":"clinician"}`:                  true,
		`{"sub":"a","x":{"sub":"b","Role":1},"x":2}`:      true,
		`{"sub":"a","sub":"b"}`:                           false,
		`{"sub":"a","s\u0075b":"b"}`:                      false,
		`{"sub":"a","role":"patient","role":"clinician"}`: false,
		"{\"sub\":\"a\xff\"}":                             false,
		`["sub"]`:                                         false,
		`null`:                                            false,
	} {
		var c claims
		if err := json.Unmarshal([]byte(text), &c); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestARememberedTokenEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		v := verifierOf(t, s)
		text := mint(t, s, Grant{Role: access.Clinician, Lifetime: time.Minute})
		for _, c := range []struct {
			wait time.Duration
			good bool
		}{{0, true}, {59 * time.Second, true}, {leeway, true}, {2 * time.Second, false}} {
			time.Sleep(c.wait)
			if _, err := v.Verify(t.Context(), text); (err == nil) != c.good {
				t.Errorf("%v later: %v", c.wait, err)
			}
		}
	})
}

// A key that is taken away takes its tokens with it, remembered or not.
func TestARememberedTokenEndsWithItsKey(t *testing.T) {
	old, next := newSigner(t), newSigner(t)
	text := old.JWKS()
	k := &Keys{read: func(context.Context) ([]byte, error) { return text, nil }, logger: quiet, turn: make(chan struct{}, 1)}
	k.look(t.Context(), 0)
	v, err := NewVerifier(Config{k, DevelopmentIssuer, DevelopmentAudience})
	require.NoError(t, err)
	tok := mint(t, old, Grant{Role: access.Clinician})
	if _, err := v.Verify(t.Context(), tok); err != nil {
		t.Fatal(err)
	}
	k.look(t.Context(), 0)
	if k.generation() != 0 {
		t.Error("the same keys are another generation: every token would be verified again")
	}
	text = next.JWKS()
	k.look(t.Context(), 0)
	if _, err := v.Verify(t.Context(), tok); !errors.Is(err, errKey) {
		t.Errorf("the key is gone: %v", err)
	}
	if _, err := v.Verify(t.Context(), mint(t, next, Grant{Role: access.Clinician})); err != nil {
		t.Errorf("the key is there: %v", err)
	}
}

// A flood of forgeries must not take all processors from those who are known.
func TestSignaturesAreVerifiedAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		v := verifierOf(t, s)
		known, unknown := mint(t, s, Grant{Role: access.Clinician}), mint(t, s, Grant{Role: access.Administrator})
		if _, err := v.Verify(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		for range cap(v.turns) {
			v.turns <- struct{}{}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := v.Verify(ctx, unknown); !errors.Is(err, errLeft) {
			t.Errorf("it was not its turn: %v", err)
		}
		if _, err := v.Verify(ctx, strings.Replace(unknown, ".", "x.", 1)); errors.Is(err, errLeft) {
			t.Errorf("what needs no signature waits for its turn: %v", err)
		}
		if _, err := v.Verify(ctx, known); err != nil {
			t.Errorf("who is known waits: %v", err)
		}
		for range cap(v.turns) {
			<-v.turns
		}
		if _, err := v.Verify(t.Context(), unknown); err != nil || len(v.turns) != 0 {
			t.Errorf("%v, %d turns are not given back", err, len(v.turns))
		}
	})
}

// Whatever is sent, it is refused in words of ours, and only a token that was minted is good.
func FuzzVerify(f *testing.F) {
	s := newSigner(f)
	v := verifierOf(f, s)
	good := mint(f, s, Grant{Role: access.Clinician})
	header, rest, _ := strings.Cut(good, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	for _, text := range []string{good, "", ".", "..", "a.b.c", header + "..", header + "." + claims + ".", header + ".bnVsbA." + signature, good + ".", " " + good} {
		f.Add(text)
	}
	own := []error{errSize, errMalformed, errKey, errSignature, errTime, errElsewhere, errClaims}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := v.Verify(t.Context(), text)
		if (err == nil) != (text == good) || err == nil && p.Role != access.Clinician {
			t.Fatalf("%q: %+v, %v", text, p, err)
		}
		if err != nil && (p.Subject != "" || !slices.Contains(own, err)) {
			t.Fatalf("%q: %+v, %v", text, p, err)
		}
	})
}
