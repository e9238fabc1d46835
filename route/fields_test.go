package route

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// A browser sends a part without a name and content for each file that was not
// chosen.
func TestAFileThatWasNotChosenIsAbsent(t *testing.T) {
	type in struct {
		Photo Optional[Upload] `form:"photo"`
		Scan  []Upload         `form:"scan" validate:"required"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	part := func(name, file, content string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"" + file + "\"\r\nContent-Type: application/octet-stream\r\n\r\n" + content + "\r\n"
	}
	const media = "multipart/form-data; boundary=x"
	if w := do(s, "POST", "/", media, part("photo", "", "")+part("scan", "a.png", "1")+"--x--\r\n"); w.Code != 204 || s.got.Photo.Set || len(s.got.Scan) != 1 {
		t.Errorf("%d %s %+v", w.Code, w.Body, s.got)
	}
	if w := do(s, "POST", "/", media, part("photo", "", "")+part("scan", "", "")+"--x--\r\n"); w.Code != 400 || !strings.Contains(w.Body.String(), `[{"detail":"is required","parameter":"scan","in":"form"}]`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, "POST", "/", media, part("photo", "", "text")+part("scan", "a", "1")+"--x--\r\n"); w.Code != 400 || !strings.Contains(w.Body.String(), `must be a file`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A proxy between the client and the server may join the lines of a header.
func TestAListInAHeaderIsTheSameOnOneLine(t *testing.T) {
	type in struct {
		Tags []string        `header:"X-Tags"`
		Nums Optional[[]int] `header:"X-Nums" validate:"max=3"`
		One  string          `header:"X-One"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("GET", "/", f) }, Config{})
	want := in{[]string{"a", `"b, \", c"`, "d"}, some([]int{1, 2}), "a, b"}
	for _, header := range [][]string{
		{"X-Tags", "a", "X-Tags", `"b, \", c"`, "X-Tags", "d", "X-Nums", "1", "X-Nums", "2", "X-One", "a, b"},
		{"X-Tags", "a ,\t" + `"b, \", c",, d,`, "X-Nums", "1,2", "X-One", "a, b"},
	} {
		if w := do(s, "GET", "/", "", "", header...); w.Code != 204 || !reflect.DeepEqual(s.got, want) {
			t.Errorf("%d %s %+v", w.Code, w.Body, s.got)
		}
	}
}

// Text that is not UTF-8 cannot be stored, compared or answered unchanged. The decoders of JSON and
// XML bodies refuse it.
func TestTextIsUTF8WhereverItComesFrom(t *testing.T) {
	type in struct {
		ID   string `path:"id"`
		Q    string `query:"q"`
		H    string `header:"X-H"`
		F    string `form:"f"`
		Raw  []byte `form:"raw"`
		Text string `body:"text"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/{id}", f) }, Config{})
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct{ target, media, body, header string }{
		{"/%ff", "text/plain", "", ""}, {"/a?q=%ff", "text/plain", "", ""}, {"/a", "text/plain", "", "\xff"}, {"/a", form, "f=%ff", ""}, {"/a", "text/plain", "\xff", ""},
	} {
		if w := do(s, "POST", c.target, c.media, c.body, "X-H", c.header); w.Code != 400 || !strings.Contains(w.Body.String(), "must be UTF-8") {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
	if w := do(s, "POST", "/a", form, "raw=%ff"); w.Code != 204 || string(s.got.Raw) != "\xff" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// encoding/json writes every slice of bytes as base64.
func TestNamedBytesAreBase64AsInResponses(t *testing.T) {
	type digest []byte
	type letter uint8
	type all struct {
		D digest   `json:"d"`
		L []letter `json:"l"`
	}
	want := all{digest{1, 2}, []letter{3}}
	body, _ := json.Marshal(want)
	s := serving(t, func(f func(context.Context, all) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	if w := do(s, "POST", "/", "application/json", string(body)); w.Code != 204 || !reflect.DeepEqual(s.got, want) {
		t.Errorf("%s: %d %s %+v", body, w.Code, w.Body, s.got)
	}
	m := NewMux(Config{})
	check(t, m.Add(New("POST", "/", func(context.Context, all) (all, error) { return want, nil })))
	doc, err := m.OpenAPI(Info{})
	if n := strings.Count(string(doc), `"contentEncoding":"base64"`); err != nil || n != 4 {
		t.Errorf("%d, %v\n%s", n, err, doc)
	}
}

func TestElementsOfAnOptionalListAreReadFromXMLToo(t *testing.T) {
	type in struct {
		Tags Optional[[]string] `xml:"tag"`
		Nums *[]int             `xml:"num"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	nums := []int{1, 2}
	want := in{some([]string{"a", "b"}), &nums}
	if w := do(s, "POST", "/", "application/xml", "<p><tag>a</tag><num>1</num><tag>b</tag><num>2</num></p>"); w.Code != 204 || !reflect.DeepEqual(s.got, want) {
		t.Errorf("%d %s %+v", w.Code, w.Body, s.got)
	}
}

func TestACompressedBodyIsRefusedForWhatItIs(t *testing.T) {
	type in struct {
		A int `json:"a"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	w := do(s, "POST", "/", "application/json", "\x1f\x8b", "Content-Encoding", "gzip")
	if w.Code != http.StatusUnsupportedMediaType || !strings.Contains(w.Body.String(), "Content-Encoding") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, "POST", "/", "application/json", `{"a":1}`, "Content-Encoding", "identity"); w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// An XML attribute once panicked if its field was a pointer to what cannot be text.
func TestAnOptionalPointerToAnUploadComesFromAFormOnly(t *testing.T) {
	type in struct {
		Photo Optional[*Upload] `form:"photo" json:"photo" xml:"photo,attr" validate:"required"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	one, oneBody := multiparted("@photo", "x")
	two, twoBody := multiparted("@photo", "x", "@photo", "y")
	none, noneBody := multiparted("@other", "x")
	for _, c := range []struct{ media, body, fault string }{
		{one, oneBody, ""}, {two, twoBody, "is given more than once"}, {none, noneBody, "is required"},
		{"application/x-www-form-urlencoded", "photo=x", "must be a file"}, {"application/json", `{"photo":"x"}`, "must be a file"},
		{"application/xml", `<in photo="x"/>`, "cannot be sent as XML"},
	} {
		w := do(s, "POST", "/", c.media, c.body)
		if got := s.got.Photo; c.fault == "" && (w.Code != 204 || !got.Set || string(got.Value.Content) != "x") || c.fault != "" && !strings.Contains(w.Body.String(), c.fault) {
			t.Errorf("%s: %d %s, %v", c.media, w.Code, w.Body, got)
		}
	}
}

// some is an Optional that is set.
func some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }
