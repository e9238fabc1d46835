package token

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// Forgeries that services have taken elsewhere are refused: other algorithms, other keys, a
// public key as a secret, headers that name a key of their own, and what is no token.
func TestForgedTokensAreRefused(t *testing.T) {
	s, other := newSigner(t), newSigner(t)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	var ours struct{ Keys []webKey }
	require.NoError(t, json.Unmarshal(s.JWKS(), &ours))
	public := webKey{Type: "RSA", ID: "rsa", N: encoded(private.N.Bytes()), E: encoded(big.NewInt(int64(private.E)).Bytes())}
	set := setOf(ours.Keys[0], public)
	v, err := NewVerifier(Config{keysOf(t, func(context.Context) ([]byte, error) { return set, nil }), DevelopmentIssuer, DevelopmentAudience})
	require.NoError(t, err)

	type object = map[string]any
	byEC := func(header object) string {
		all := object{"kid": s.id}
		maps.Copy(all, header)
		return forge(t, jwt.SigningMethodES256, s.private, all, nil)
	}
	good := byEC(nil)
	for name, text := range map[string]string{"ES256": good, "RS256": forge(t, jwt.SigningMethodRS256, private, object{"kid": "rsa"}, nil)} {
		if _, err := v.Verify(t.Context(), text); err != nil {
			t.Errorf("a good token by %s: %v", name, err)
		}
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	signed := good[:strings.LastIndex(good, ".")+1]
	last := len(good) - 1
	attacks := map[string]string{
		"unsigned": signed, "a signature of zeros": signed + encoded(make([]byte, 64)), "without a signature": strings.TrimSuffix(signed, "."),
		"bits that do not count": good[:last] + string(alphabet[strings.IndexByte(alphabet, good[last])^1]), "padded": good + "=", "two tokens": good + ", Bearer " + good,
		"oversize":     forge(t, jwt.SigningMethodES256, s.private, object{"kid": s.id}, object{"pad": strings.Repeat("x", MaxSize)}),
		"swapped key":  forge(t, jwt.SigningMethodES256, other.private, object{"kid": s.id}, nil),
		"a key of own": forge(t, jwt.SigningMethodES256, other.private, object{"kid": s.id, "jwk": json.RawMessage(other.JWKS()), "jku": "http://127.0.0.1:1/jwks.json"}, nil),
		"crit":         byEC(object{"crit": []string{"exp"}}), "ES256 of the RSA key": byEC(object{"kid": "rsa"}),
		"RS256 of the EC key": forge(t, jwt.SigningMethodRS256, private, object{"kid": s.id}, nil), "PS256": forge(t, jwt.SigningMethodPS256, private, object{"kid": "rsa"}, nil),
	}
	for _, alg := range []any{"none", "None", "NONE", "", nil, []string{"ES256"}} {
		attacks[fmt.Sprint("unsigned by ", alg)] = forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, object{"kid": s.id, "alg": alg}, nil)
		attacks[fmt.Sprint("signed by ", alg)] = byEC(object{"alg": alg})
	}
	for _, id := range []any{nil, "", 1, "stranger", "../../../../dev/null", s.id + "' OR '1'='1", s.id + "\x00", "https://evil.example/jwks"} {
		attacks[fmt.Sprint("kid ", id)] = byEC(object{"kid": id})
	}
	for _, key := range []any{&private.PublicKey, &s.private.PublicKey} {
		der, err := x509.MarshalPKIXPublicKey(key)
		require.NoError(t, err)
		text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		for n, secret := range [][]byte{der, text, bytes.TrimSpace(text), set, private.N.Bytes(), {}} {
			for _, id := range []string{"rsa", s.id} {
				attacks[fmt.Sprintf("HS256 by form %d of %T as %s", n, key, id)] = forge(t, jwt.SigningMethodHS256, secret, object{"kid": id}, nil)
			}
		}
	}
	for name, text := range attacks {
		if p, err := v.Verify(t.Context(), text); err == nil || p.Subject != "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}
