// Package token verifies the bearer tokens of callers: JSON Web Tokens, signed by RS256
// or ES256 with a key of a JSON Web Key Set. It is also its own issuer, with
// development keys, where there is no other.
//
// A token must say who it is about (sub), who made it (iss), for whom (aud), until when
// (exp), in which role (role: clinician, administrator, export-job or patient) and for
// what (scope, as SMART App Launch has it). That of a patient says whose record is the
// own one (patient).
package token

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	"github.com/maypok86/otter/v2"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

const (
	// MaxSize is how many bytes a token may have.
	MaxSize = 8 << 10

	maxRemembered = 10_000
	leeway        = 30 * time.Second // for clocks that differ
	maxName       = 200              // bytes of a subject, which goes on record
)

// Why a token is not good. The texts repeat nothing of it.
var (
	errSize      = errors.New("it is longer than 8 KiB")
	errMalformed = errors.New("it is no JSON Web Token")
	errKey       = errors.New("it is not signed by RS256 or ES256 with a known key of that algorithm")
	errSignature = errors.New("the signature is not that of the key")
	errTime      = errors.New("it is not valid now")
	errElsewhere = errors.New("it is of another issuer, or for another audience")
	errClaims    = errors.New("a claim is missing, or makes no sense")
	errLeft      = errors.New("the caller left before its turn to be verified")
)

// Config says which tokens are good. All of it is needed.
type Config struct {
	Keys     *Keys
	Issuer   string // the iss of tokens
	Audience string // one of the aud of tokens
}

// Verifier verifies tokens, and remembers those that are good until they expire, or
// until the keys change. It is safe for concurrent use.
type Verifier struct {
	keys       *Keys
	parser     *jwt.Parser
	remembered *otter.Cache[[sha256.Size]byte, good]
	turns      chan struct{} // to verify signatures
}

// good is a token that was verified.
type good struct {
	holder     access.Principal
	until      time.Time
	generation uint64
}

// NewVerifier returns a Verifier of those tokens. Nothing is started.
func NewVerifier(cfg Config) (*Verifier, error) {
	if cfg.Keys == nil || cfg.Issuer == "" || cfg.Audience == "" {
		return nil, errors.New("token: a Verifier needs keys, an issuer and an audience")
	}
	remembered, err := otter.New(&otter.Options[[sha256.Size]byte, good]{MaximumSize: maxRemembered})
	if err != nil {
		return nil, err
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{rs256, es256}), jwt.WithStrictDecoding(), jwt.WithLeeway(leeway),
		jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience), jwt.WithExpirationRequired(), jwt.WithIssuedAt())
	// Verifying a signature costs much, and a stranger can ask for it. Half of the
	// processors are left to callers whose tokens are remembered.
	turns := make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))
	return &Verifier{cfg.Keys, parser, remembered, turns}, nil
}

// claims are what a token says.
type claims struct {
	jwt.RegisteredClaims
	Role    access.Role `json:"role"`
	Patient string      `json:"patient,omitempty"`
	Scope   string      `json:"scope"`
}

// claimNames are the claims that are read.
var claimNames = []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "role", "patient", "scope"}

// numericDates are those that are numbers. A number in quotes is none (RFC 7519, section
// 2), though package json takes it.
var numericDates = []string{"exp", "nbf", "iat"}

// UnmarshalJSON reads the claims of those names, letter for letter (RFC 7519, section 4).
// Package json would take "Role" for "role", and of two the last: a claim that an issuer
// copies into its tokens could replace its own.
func (c *claims) UnmarshalJSON(text []byte) error {
	if !utf8.Valid(text) {
		return errClaims
	}
	type plain claims
	if err := json.Unmarshal(text, (*plain)(c)); err != nil {
		return errClaims
	}
	in := json.NewDecoder(bytes.NewReader(text))
	if start, _ := in.Token(); start != json.Delim('{') {
		return errClaims
	}
	seen := map[string]bool{}
	for in.More() {
		name, _ := in.Token() // a string: the text was read before
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return errClaims
		}
		for _, known := range claimNames {
			if claim := name.(string); strings.EqualFold(claim, known) && (claim != known || seen[claim]) {
				return errClaims
			}
		}
		if value[0] == '"' && slices.Contains(numericDates, name.(string)) {
			return errClaims
		}
		seen[name.(string)] = true
	}
	return nil
}

// Verify implements front.Verifier. It may ask for the keys again, at most every few
// seconds, when the token wants one that is not known.
func (v *Verifier) Verify(ctx context.Context, text string) (access.Principal, error) {
	if len(text) > MaxSize {
		return access.Principal{}, errSize
	}
	sum := sha256.Sum256([]byte(text))
	if g, ok := v.remembered.GetIfPresent(sum); ok && g.generation == v.keys.generation() && time.Now().Before(g.until) {
		return g.holder, nil
	}
	return v.verify(ctx, sum, text)
}

// verify looks at a token that is not remembered.
func (v *Verifier) verify(ctx context.Context, sum [sha256.Size]byte, text string) (access.Principal, error) {
	var c claims
	var generation uint64
	turn := false
	defer func() {
		if turn {
			<-v.turns
		}
	}()
	_, err := v.parser.ParseWithClaims(text, &c, func(t *jwt.Token) (public any, err error) {
		if public, generation, err = v.key(ctx, t); err != nil {
			return nil, err
		}
		select {
		case v.turns <- struct{}{}:
			turn = true
			return public, nil
		case <-ctx.Done():
			return nil, errLeft
		}
	})
	if err != nil {
		return access.Principal{}, reason(err)
	}
	holder, err := c.holder()
	if err == nil {
		v.remembered.Set(sum, good{holder, c.ExpiresAt.Time, generation})
	}
	return holder, err
}

// key returns the key of the id that the token names. Nothing else in its header
// matters, but what its issuer says must be understood.
func (v *Verifier) key(ctx context.Context, t *jwt.Token) (public any, generation uint64, err error) {
	id, _ := t.Header["kid"].(string)
	if _, critical := t.Header["crit"]; critical || id == "" {
		return nil, 0, errKey
	}
	k, ok, generation := v.keys.find(ctx, id)
	if !ok || k.algorithm != t.Method.Alg() {
		return nil, 0, errKey
	}
	return k.public, generation, nil
}

// unseen reports whether a character cannot be seen: also one of those that are letters or marks
// and that a program may leave out when it shows a text.
func unseen(r rune) bool {
	const emptyBraille = '\u2800'
	return !unicode.IsPrint(r) || r == emptyBraille || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// holder returns whom the token is about.
func (c *claims) holder() (access.Principal, error) {
	p := access.Principal{Subject: c.Subject, Role: c.Role, Scopes: strings.Fields(c.Scope)}
	// The subject is read on lists of the audit: what breaks a line, turns the direction of
	// writing or cannot be seen could make one subject look like another, or like two records.
	if p.Subject == "" || len(p.Subject) > maxName || strings.ContainsFunc(p.Subject, unseen) {
		return access.Principal{}, errClaims
	}
	if !slices.Contains(access.Roles(), p.Role) {
		return access.Principal{}, errClaims
	}
	if p.Role == access.Patient {
		if _, err := patientapi.ParseID(c.Patient); err != nil {
			return access.Principal{}, errClaims
		}
		p.Patient = c.Patient
	}
	return p, nil
}

// reason is why a token is not good, in words that repeat nothing of it.
func reason(err error) error {
	for _, r := range []struct{ is, means error }{
		{errKey, errKey},
		{errLeft, errLeft},
		{jwt.ErrTokenMalformed, errMalformed},
		{jwt.ErrTokenUnverifiable, errKey},
		{jwt.ErrTokenSignatureInvalid, errSignature},
		{jwt.ErrTokenRequiredClaimMissing, errClaims},
		{jwt.ErrTokenInvalidIssuer, errElsewhere},
		{jwt.ErrTokenInvalidAudience, errElsewhere},
		{jwt.ErrTokenExpired, errTime},
		{jwt.ErrTokenNotValidYet, errTime},
		{jwt.ErrTokenUsedBeforeIssued, errTime},
	} {
		if errors.Is(err, r.is) {
			return r.means
		}
	}
	return errClaims
}
