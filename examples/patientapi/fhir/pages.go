package fhir

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/route"
)

// PageKeySize is the length of Config.PageKey, in bytes.
const PageKeySize = 32

const (
	pageLife = time.Hour // of a link to a page
	maxToken = 4096      // characters; the longest search needs half of it
)

// A link to a page says nothing to those who see it: URLs are logged, and searches name
// people. What the page is of is encrypted into it, so that the service has nothing to
// remember; who may see the page is decided when it is asked for.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (*sealer, error) {
	if key == nil {
		key = make([]byte, PageKeySize)
		rand.Read(key) // it does not fail
	}
	if len(key) != PageKeySize {
		return nil, fmt.Errorf("fhir: the page key has %d bytes: want %d random ones", len(key), PageKeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{aead}, err
}

// sealed is what is in a token.
type sealed[T any] struct {
	Ends int64 `json:"e"` // in seconds since 1970
	Page T     `json:"p"`
}

var errPage = &route.Problem{Status: http.StatusGone, Type: "expired", Detail: "this link to a page is not valid, or not any more: search again"}

// seal returns a token for a page of that kind. Tokens of one kind are no good for
// another.
func seal[T any](s *sealer, kind string, page T) (string, error) {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false) // nothing of it is ever in a page of HTML, and six bytes for one may be too long
	if err := encoder.Encode(sealed[T]{time.Now().Add(pageLife).Unix(), page}); err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain.Bytes(), []byte(kind)))
	if len(token) > maxToken {
		return "", errors.New("fhir: a search is too long for a link to its next page")
	}
	return token, nil
}

// open returns the page that seal was given, or errPage.
func open[T any](s *sealer, kind, token string) (page T, err error) {
	var content sealed[T]
	box, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(token) > maxToken {
		return page, errPage
	}
	plain, err := s.aead.Open(nil, nil, box, []byte(kind))
	if err != nil || json.Unmarshal(plain, &content) != nil || time.Now().Unix() > content.Ends {
		return page, errPage
	}
	return content.Page, nil
}
