package admissionhttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
)

// net/http's MaxBytesReader closes the connection by a method that no other writer can have. The
// advice in the package comment closes the connection; MaxBytesReader inside alone does not.
func TestABodyThatIsTooLongClosesItsConnectionWhereTheDocumentationSays(t *testing.T) {
	const most, sent = 10, 1000
	read := func(limited, says bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if limited {
				r.Body = http.MaxBytesReader(w, r.Body, most)
			}
			_, err := io.Copy(io.Discard, r.Body)
			if _, ok := errors.AsType[*http.MaxBytesError](err); !ok {
				t.Errorf("%v", err)
			}
			if says {
				w.Header().Set("Connection", "close")
			}
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		})
	}
	admit := middleware(t, admissionhttp.Config{Limiter: one(t)})
	for name, c := range map[string]struct {
		handler http.Handler
		closes  bool
	}{
		"outside":                   {http.MaxBytesHandler(admit(read(false, false)), most), true},
		"inside":                    {admit(read(true, false)), false},
		"inside, and with a header": {admit(read(true, true)), true},
	} {
		s := serve(t, c.handler)
		resp := must(s.Client().Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", sent))))
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge || resp.Close != c.closes {
			t.Errorf("%s: %d, closes %v", name, resp.StatusCode, resp.Close)
		}
	}
}
