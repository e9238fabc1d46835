package route

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// Names that narrow the request are refused from every source, even if other unknown names are
// ignored.
func TestSomeUnknownNamesAreRefusedWhateverIsAllowed(t *testing.T) {
	type in struct {
		Page string `query:"page"`
		Name string `form:"name" json:"name" xml:"name"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route {
		return New("POST", "/", f).AllowUnknown(func(_ *http.Request, name string) bool { return !strings.HasSuffix(name, "exact") })
	}, Config{})
	const form = "application/x-www-form-urlencoded"
	parts := func(name string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\na\r\n--b--\r\n"
	}
	for _, c := range []struct {
		path, media, body string
		code              int
	}{
		{"/?page=2&odd=1", form, "name=a&odd=1", 204},
		{"/?page=2", "multipart/form-data; boundary=b", parts("odd"), 204},
		{"/?page:exact=2", form, "name=a", 400},
		{"/?page%3aexact=2", form, "name=a", 400},
		{"/?page=2&odd:exact", form, "name=a", 400},
		{"/", form, "name:exact=a", 400},
		{"/", form, "odd=1&name%3Aexact=a", 400},
		{"/", "multipart/form-data; boundary=b", parts("name:exact"), 400},
		{"/", "application/json", `{"name":"a","odd":1}`, 204},
		{"/", "application/json", `{"name":"a","odd":1,"name:exact":1}`, 400},
		{"/", "application/xml", `<in odd="1"><name>a</name><odd>1</odd></in>`, 204},
		{"/", "application/xml", `<in><name>a</name><exact>1</exact></in>`, 400},
		{"/", "application/xml", `<in exact="1"><name>a</name></in>`, 400},
		{"/", "application/xml", `<in><name exact="1">a</name></in>`, 400},
	} {
		if w := do(s, "POST", c.path, c.media, c.body); w.Code != c.code {
			t.Errorf("%s %s: %d %s, want %d", c.path, c.body, w.Code, w.Body, c.code)
		}
	}
}
