package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
)

// The algorithms, each for one type of key. A token is never asked for more than which
// key it wants: a public key cannot be mistaken for the secret of another algorithm.
const (
	rs256 = "RS256"
	es256 = "ES256"
)

// key is a public key that signs by one algorithm only.
type key struct {
	algorithm string
	public    crypto.PublicKey
}

// set is what a JSON Web Key Set amounts to here: keys by their ids.
type set struct {
	generation uint64
	text       string
	keys       map[string]key
}

const (
	maxKeys    = 100
	minRSABits = 2048
	maxRSABits = 8192 // more takes too long to verify
)

// webKey is one key as RFC 7517 has it. Certificates in it are not looked at, nor is
// what would make it a private one.
type webKey struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid"`
	Use        string   `json:"use,omitempty"`
	Operations []string `json:"key_ops,omitempty"`
	Algorithm  string   `json:"alg,omitempty"`
	Curve      string   `json:"crv,omitempty"`
	X          string   `json:"x,omitempty"`
	Y          string   `json:"y,omitempty"`
	N          string   `json:"n,omitempty"`
	E          string   `json:"e,omitempty"`
}

// parseSet reads a JSON Web Key Set. Keys that cannot verify a signature here are left
// out: those of other types and for other uses, without an id, too small, or malformed.
// Of several keys with one id all are left out, since nothing says which one is meant.
func parseSet(text []byte) (map[string]key, error) {
	var doc struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &doc); err != nil || doc.Keys == nil {
		return nil, fmt.Errorf(`no JSON Web Key Set: want {"keys":[…]}`)
	}
	if n := len(*doc.Keys); n > maxKeys {
		return nil, fmt.Errorf("%d keys in the set: want at most %d", n, maxKeys)
	}
	keys, seen := map[string]key{}, map[string]bool{}
	for _, raw := range *doc.Keys {
		var w webKey
		if json.Unmarshal(raw, &w) != nil || w.ID == "" {
			continue
		}
		if k, ok := w.verifies(); ok && !seen[w.ID] {
			keys[w.ID] = k
		} else if seen[w.ID] {
			delete(keys, w.ID)
		}
		seen[w.ID] = true
	}
	return keys, nil
}

// verifies returns the key if it is one to verify signatures with.
func (w webKey) verifies() (k key, ok bool) {
	if w.Use != "" && w.Use != "sig" || w.Operations != nil && !slices.Contains(w.Operations, "verify") {
		return key{}, false
	}
	switch w.Type {
	case "EC":
		k.algorithm, k.public = es256, w.ecdsa()
	case "RSA":
		k.algorithm, k.public = rs256, w.rsa()
	}
	return k, k.public != nil && (w.Algorithm == "" || w.Algorithm == k.algorithm)
}

func (w webKey) ecdsa() crypto.PublicKey {
	const size = 32
	x, y := number(w.X), number(w.Y)
	if w.Curve != "P-256" || len(x) != size || len(y) != size {
		return nil
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	if err != nil { // not on the curve
		return nil
	}
	return public
}

func (w webKey) rsa() crypto.PublicKey {
	n, e := new(big.Int).SetBytes(number(w.N)), new(big.Int).SetBytes(number(w.E))
	if bits := n.BitLen(); bits < minRSABits || bits > maxRSABits || n.Bit(0) == 0 {
		return nil
	}
	if e.BitLen() > 31 || e.Int64() < 3 || e.Bit(0) == 0 {
		return nil
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}
}

// number decodes what RFC 7518 calls Base64urlUInt; nil if it is none.
func number(text string) []byte {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}
