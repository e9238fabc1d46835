package route

import (
	"context"
	"net"
	"strings"
	"testing"
)

type bounded struct {
	Any  any      `json:"any"`
	Tag  []string `json:"tag" form:"tag" xml:"tag"`
	Sub  *nest    `json:"sub" xml:"sub"`
	File []Upload `form:"file"`
	Q    []int    `query:"q"`
	Text string   `body:"text"`
}

type nest struct {
	Sub *nest `json:"sub" xml:"sub"`
}

func TestEveryLimitAtItAndOnePast(t *testing.T) {
	limits := Limits{Body: 600, File: 100, Depth: 5, Fields: 4, Parts: 3}
	strict := serving(t, func(f func(context.Context, bounded) (Empty, error)) *Route {
		return New("POST", "/", f).Limits(limits)
	}, Config{Limits: Limits{Body: 1, Fields: 1}, Codecs: map[string]codec{"application/x-easy": func([]byte) ([]byte, error) { return []byte("{}"), nil }}})
	lax := serving(t, func(f func(context.Context, bounded) (Empty, error)) *Route {
		return New("POST", "/", f).Limits(limits).Limits(Limits{Parts: 9, Body: 4 << 10}).AllowUnknown()
	}, Config{})
	padded := func(media, body string) func(int) (string, string, string) {
		return func(n int) (string, string, string) {
			return media, "", body + strings.Repeat(" ", n-len(body))
		}
	}
	multiMedia, multi := multiparted("tag", "x")
	object := func(depth int) string {
		return strings.Repeat(`{"sub":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
	}
	for _, c := range []struct {
		name  string
		limit int
		send  func(n int) (media, query, body string)
		past  int
		says  string
	}{
		{"json body", 600, padded("application/json", "{}"), 413, "body-too-large"},
		{"form body", 600, padded("application/x-www-form-urlencoded", "tag="), 413, "body-too-large"},
		{"multipart body", 600, padded(multiMedia, multi), 413, "body-too-large"},
		{"xml body", 600, padded("text/xml", "<p/>"), 413, "body-too-large"},
		{"text body", 600, padded("text/plain", "a"), 413, "body-too-large"},
		{"codec body", 600, padded("application/x-easy", "a"), 413, "body-too-large"},
		{"json depth", 5, func(n int) (string, string, string) { return "application/json", "", object(n) }, 400, "is nested too deeply"},
		{"json depth of anything", 5, func(n int) (string, string, string) {
			return "application/json", "", `{"any":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
		}, 400, "is nested too deeply"},
		{"xml depth", 5, func(n int) (string, string, string) {
			return "application/xml", "", "<p>" + strings.Repeat("<sub>", n-1) + strings.Repeat("</sub>", n-1) + "</p>"
		}, 400, "is nested too deeply"},
		{"json depth of what is unknown", 5, func(n int) (string, string, string) {
			return "application/json", "", `{"else":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
		}, 400, "is nested too deeply"},
		{"xml depth of what is unknown", 5, func(n int) (string, string, string) {
			return "application/xml", "", "<p>" + strings.Repeat("<else>", n) + strings.Repeat("</else>", n) + "</p>"
		}, 400, "is nested too deeply"},
		{"query parameters", 4, func(n int) (string, string, string) {
			return "application/json", "?" + strings.Repeat("q=1&", n), "{}"
		}, 400, "too many query parameters"},
		{"form fields", 4, func(n int) (string, string, string) {
			return "application/x-www-form-urlencoded", "", strings.Repeat("tag=1&", n)
		}, 400, "too many fields"},
		{"multipart fields, unknown ones too", 4, func(n int) (string, string, string) {
			var parts []string
			for range n {
				parts = append(parts, "else", "x")
			}
			media, body := multiparted(append(parts, "@file", "x")...)
			return media, "", body
		}, 400, "too many fields"},
		{"multipart parts", 3, func(n int) (string, string, string) {
			var parts []string
			for range n {
				parts = append(parts, "tag", "x")
			}
			media, body := multiparted(parts...)
			return media, "", body
		}, 400, "too many parts"},
		{"file", 100, func(n int) (string, string, string) {
			media, body := multiparted("@file", strings.Repeat("x", n))
			return media, "", body
		}, 413, "body-too-large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := strict
			if strings.Contains(c.name, "unknown") {
				s = lax
			}
			for past, want := range []int{204, c.past} {
				media, query, body := c.send(c.limit + past)
				for _, known := range []bool{true, false} {
					h := newHarness("POST", "/"+query, media, body)
					if !known {
						h.request.ContentLength = -1
					}
					w := do(s, "POST", "/"+query, media, body)
					h.run(s)
					if w.Code != want || h.status != want || past == 1 && !strings.Contains(w.Body.String(), c.says) {
						t.Errorf("limit + %d: %d and %d, %s", past, w.Code, h.status, w.Body)
					}
				}
			}
		})
	}
	t.Run("deep nesting costs no stack", func(t *testing.T) {
		s := serving(t, func(f func(context.Context, bounded) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
		if w := do(s, "POST", "/", "application/json", `{"any":`+strings.Repeat("[", 1<<20-100)); w.Code != 400 {
			t.Errorf("%d", w.Code)
		}
	})
}

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
