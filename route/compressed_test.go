package route

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// compressing compresses answers on their way, as small middleware does, and keeps the other headers.
type compressing struct {
	http.ResponseWriter
	to *gzip.Writer
}

func (c *compressing) WriteHeader(status int) {
	c.Header().Set("Content-Encoding", "gzip")
	c.ResponseWriter.WriteHeader(status)
}

func (c *compressing) Write(p []byte) (int, error) { return c.to.Write(p) }

// The answers had the Content-Length of the text, which the client waited for in vain.
func TestAnAnswerMayBeCompressedOnItsWay(t *testing.T) {
	problem := answering(t, Config{}, func() (Empty, error) { return Empty{}, errors.New("broken") })
	file := answering(t, Config{}, func() (Response[File], error) {
		return Response[File]{Code: 202, Body: File{Content: strings.NewReader(strings.Repeat("text ", 1000))}}, nil
	})
	for name, c := range map[string]struct {
		handler http.Handler
		eager   bool // the header is set before the handler runs
		status  int
	}{
		"a problem, at the first write": {problem, false, 500},
		"a problem, beforehand":         {problem, true, 500},
		"a file, beforehand":            {file, true, 202},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				z := &compressing{w, gzip.NewWriter(w)}
				if c.eager {
					w.Header().Set("Content-Encoding", "gzip")
				}
				c.handler.ServeHTTP(z, r)
				_ = z.to.Close()
			}))
			defer s.Close()
			resp, err := s.Client().Get(s.URL) // asks for gzip and decompresses
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); resp.StatusCode != c.status || len(body) == 0 || err != nil {
				t.Errorf("%d %q %v", resp.StatusCode, body, err)
			}
		})
	}
}
