package front

import (
	"crypto/rand"
	"net/http"
)

const requestIDHeader = "X-Request-Id"

// requestID returns the id of a request: the client's own if it may go into our logs,
// otherwise a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get(requestIDHeader); saneRequestID(id) {
		return id
	}
	return rand.Text()
}

// saneRequestID reports whether a client's request id may go into our logs.
func saneRequestID(id string) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
