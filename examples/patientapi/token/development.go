package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// What development tokens say of themselves.
const (
	DevelopmentIssuer   = "urn:patientapi:development"
	DevelopmentAudience = "urn:patientapi"
)

// Signer makes tokens for any subject and role, so it is for development. In production
// an issuer makes them, and the service has its public keys alone.
type Signer struct {
	private *ecdsa.PrivateKey
	id      string
}

// LogValue hides the key from logs.
func (*Signer) LogValue() slog.Value { return slog.StringValue(redacted) }

// String hides the key from everything that formats the signer.
func (*Signer) String() string { return redacted }

// GoString hides the key from everything that formats the signer.
func (*Signer) GoString() string { return redacted }

const redacted = "signer (redacted)"

// NewSigner returns a Signer with a key of its own.
func NewSigner() (*Signer, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return signer(private)
}

func signer(private *ecdsa.PrivateKey) (*Signer, error) {
	point, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(point)
	return &Signer{private, "development-" + base64.RawURLEncoding.EncodeToString(sum[:8])}, nil
}

// DevelopmentDir returns where Development keeps the key unless said otherwise: a folder
// of the user's own.
func DevelopmentDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no folder for development keys (%w): give keys with --jwks", err)
	}
	return filepath.Join(dir, "spillway"), nil
}

// Development returns a Signer with the key in a folder, which is made on first use and
// which no other user can read. Processes that start at one time get the same key.
func Development(dir string) (*Signer, error) {
	name := filepath.Join(dir, "development-key.pem")
	s, err := readSigner(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if s, err = NewSigner(); err != nil {
		return nil, err
	}
	if err := s.write(dir, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("development keys: %w", err)
	}
	return readSigner(name)
}

const block = "PRIVATE KEY"

// write makes the file, whole or not at all; fs.ErrExist means that another process has.
func (s *Signer) write(dir, name string) error {
	text, err := x509.MarshalPKCS8PrivateKey(s.private)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".development-key-") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = errors.Join(pem.Encode(f, &pem.Block{Type: block, Bytes: text}), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Link(f.Name(), name)
}

func readSigner(name string) (*Signer, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && os.PathSeparator == '/' {
		return nil, fmt.Errorf("the development key %s has the mode %04o, so that others may use it: remove it, and a new one is made", name, mode)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	b, _ := pem.Decode(text)
	if b == nil || b.Type != block {
		return nil, fmt.Errorf("%s is no development key: remove it, and a new one is made", name)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	private, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%s is no development key: remove it, and a new one is made", name)
	}
	return signer(private)
}

// JWKS returns the public key as a JSON Web Key Set.
func (s *Signer) JWKS() []byte {
	point, err := s.private.PublicKey.Bytes()
	if err != nil {
		panic(err) // it was checked
	}
	coordinate := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	text, err := json.Marshal(map[string]any{"keys": []webKey{{
		Type: "EC", ID: s.id, Use: "sig", Algorithm: es256, Curve: "P-256", X: coordinate(point[1:33]), Y: coordinate(point[33:]),
	}}})
	if err != nil {
		panic(err) // strings alone
	}
	return text
}

// Verifier returns one of the tokens that s makes.
func (s *Signer) Verifier() (*Verifier, error) {
	keys, err := fixed(s.JWKS())
	if err != nil {
		return nil, err
	}
	return NewVerifier(Config{keys, DevelopmentIssuer, DevelopmentAudience})
}

// Grant is what a token is to say.
type Grant struct {
	Role     access.Role
	Patient  string        // whose record is the own one; for the role patient
	Scopes   []string      // nil means all that the role can use
	Lifetime time.Duration // more than 0
}

// Mint returns a token.
func (s *Signer) Mint(g Grant) (string, error) {
	scopes := g.Scopes
	if scopes == nil {
		scopes = access.Scopes(g.Role)
	}
	_, malformed := patientapi.ParseID(g.Patient)
	switch {
	case len(access.Scopes(g.Role)) == 0:
		return "", fmt.Errorf("role is %q: want one of %v", g.Role, access.Roles())
	case g.Role == access.Patient && malformed != nil:
		return "", errors.New("the role patient needs the id of a patient, such as P000001")
	case g.Role != access.Patient && g.Patient != "":
		return "", fmt.Errorf("the role %s is not about one patient", g.Role)
	case g.Lifetime <= 0:
		return "", fmt.Errorf("a lifetime of %v: want more than 0", g.Lifetime)
	}
	now := time.Now()
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: DevelopmentIssuer, Audience: jwt.ClaimStrings{DevelopmentAudience}, Subject: "development-" + string(g.Role),
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(g.Lifetime)),
		},
		Role: g.Role, Patient: g.Patient, Scope: strings.Join(scopes, " "),
	})
	t.Header["kid"] = s.id
	return t.SignedString(s.private)
}
