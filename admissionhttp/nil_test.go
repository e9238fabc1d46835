package admissionhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// A nil argument once caused a nil dereference at each request, and in Ready at each probe.
func TestWhatIsNotThereIsFoundWhileTheProgramStarts(t *testing.T) {
	failed, err := limiter.New(limiter.Config{MaxWait: -1})
	if err == nil {
		t.Fatal("a negative wait was accepted")
	}
	protect := must(New(Config{}))
	for name, start := range map[string]func() http.Handler{
		"New":          func() http.Handler { return protect(nil) },
		"Protect":      func() http.Handler { return Protect(nil) },
		"WithPriority": func() http.Handler { return WithPriority(spillway.High, nil) },
		"Ready":        func() http.Handler { return Ready(nil) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "admissionhttp: ") || !strings.Contains(text, "is nil") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			start()
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("Ready took a limiter that is nil")
		}
	}()
	Ready(failed.Open)
}
