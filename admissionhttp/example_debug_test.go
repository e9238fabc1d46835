package admissionhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// The page belongs beside pprof, on a listener that only operators reach.
func ExampleDebugHandler() {
	lim, err := limiter.New(limiter.Config{Name: "orders", Law: limit.NewFixed(20)})
	if err != nil {
		panic(err)
	}
	admin := http.NewServeMux()
	admin.Handle("GET /debug/spillway", admissionhttp.DebugHandler(lim))

	w := httptest.NewRecorder()
	admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/spillway", nil))
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "orders"))
	// Output: 200 true
}
