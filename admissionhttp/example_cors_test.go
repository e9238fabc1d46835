package admissionhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// cors lets pages of one origin read all answers, refusals included, and answers
// preflights.
func cors(origin string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		if r.Header.Get("Origin") == origin {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "Retry-After, "+admissionhttp.HeaderReason)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, POST")
				h.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// CORS stands outside of admission. Otherwise a page sees a network failure instead of a refusal,
// and preflights are refused too.
func Example_cors() {
	lim, _ := limiter.New(limiter.Config{Name: "http"})
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
	if err != nil {
		fmt.Println(err)
		return
	}
	const page = "https://app.example"
	service := cors(page, admit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	lim.Close() // every request is refused

	preflight := httptest.NewRequest(http.MethodOptions, "/orders", nil)
	preflight.Header.Set("Access-Control-Request-Method", http.MethodPost)
	for _, r := range []*http.Request{preflight, httptest.NewRequest(http.MethodPost, "/orders", nil)} {
		r.Header.Set("Origin", page)
		w := httptest.NewRecorder()
		service.ServeHTTP(w, r)
		fmt.Println(r.Method, w.Code, w.Header().Get("Access-Control-Allow-Origin"), w.Header().Get("Retry-After") != "")
	}
	// Output:
	// OPTIONS 204 https://app.example false
	// POST 503 https://app.example true
}
