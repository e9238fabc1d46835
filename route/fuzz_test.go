package route

import (
	"context"
	"reflect"
	"strings"
	"testing"
)

// fuzzed is bound by the plan, and by slow decoders for this type alone.
type fuzzed struct {
	ID    string         `query:"ID"`
	Name  string         `json:"name" form:"name" xml:"name" validate:"required,min=1,max=5"`
	Age   *int8          `json:"age" form:"age" xml:"age" validate:"min=0"`
	Num   uint16         `json:"num" form:"num" xml:"num" validate:"max=1000"`
	Rate  float32        `json:"rate" form:"rate" xml:"rate"`
	On    Optional[bool] `json:"on" form:"on" xml:"on"`
	Tags  []string       `json:"tags" form:"tags" xml:"tags" validate:"max=3"`
	Sub   *fuzzedSub     `json:"sub" xml:"sub"`
	Extra map[string]int `json:"extra" xml:"-"`
	Any   any            `json:"any" xml:"-"`
}

type fuzzedSub struct {
	Code string      `json:"code" xml:"code" validate:"required,enum=a|b"`
	Subs []fuzzedSub `json:"subs" xml:"subs"`
}

const fuzzedDepth = 6

func fuzzing(t testing.TB) *capture[fuzzed] {
	return serving(t, func(f func(context.Context, fuzzed) (Empty, error)) *Route {
		return New("POST", "/", f).Limits(Limits{Depth: fuzzedDepth, Fields: 8})
	}, Config{Untimed: true})
}

// compare sends body, and fails unless the route and the twin agree.
func compare[Req any](t *testing.T, s *capture[Req], media, body string, want *Req) {
	t.Helper()
	h := newHarness("POST", "/", media, body)
	if body == "" {
		h.request.Header.Set("Content-Type", media)
	}
	calls := s.calls
	h.run(s)
	if ok := h.status == 204; ok != (want != nil) || ok != (s.calls > calls) || !ok && h.status != 400 {
		t.Fatalf("answered %d; the twin says %+v", h.status, want)
	}
	if want != nil && !reflect.DeepEqual(s.got, *want) {
		t.Fatalf("\n got %+v\nwant %+v", s.got, *want)
	}
}

func FuzzJSONBody(f *testing.F) {
	for _, seed := range []string{
		`{"name":"Ada","age":36,"num":1,"rate":1.5,"on":false,"tags":["a"],"sub":{"code":"a","subs":[{"code":"b"}]},"extra":{"a":1},"any":[{}]}`,
		`{"name":"Ada"}`, `{"name":""}`, `{"name":"A","ID":"x"}`, `{"name":"A","\u0049D":"x"}`, `{"NAME":"A"}`, `{"name":null}`, `{"name":"A","age":null,"tags":null,"sub":null,"extra":null,"any":null}`,
		`{"name":"\ud83d\ude00","name":"b"}`, `{"name":"\ud800"}`, `{"name":"A","any":{"a":1,"a":2}}`, `{"name":"A","num":-0}`, `{"name":"A","num":1e2}`, `{"name":"A","num":-0.0e-9,"age":1.20e+1,"extra":{"a":1e-400,"b":1e400,"c":0.00150e5,"d":9223372036854775807.0}}`, `{"name":"A","rate":1e39}`,
		`{"name":"A","age":-1}`, `{"name":"A","any":[[[[[[[]]]]]]]}`, " {\"name\" : \"A\"}\n", `{"name":"A"}{}`, `[]`, `null`, `"`, `{"name":"A","sub":{"code":"c"}}`, `{"name":"A","sub":{}}`, `{"name":"A","any":1e999}`,
	} {
		f.Add(seed)
	}
	s := fuzzing(f)
	f.Fuzz(func(t *testing.T, body string) { compare(t, s, "application/json", body, twinJSON(body)) })
}

func FuzzForm(f *testing.F) {
	for _, seed := range []string{"name=Ada&age=36&num=1&rate=1.5&on=true&tags=a&tags=b", "name=%41+", "name=a&name=b", "name", "=", "&&name=a&", "name=a;b", "%6eame=a", "name=%zz", "name=a&rate=NaN", "name=a&rate=0x1p-2", "name=a&ID=1", "name=a&num=+5", "name=&age=-0"} {
		f.Add(seed)
	}
	s := fuzzing(f)
	f.Fuzz(func(t *testing.T, body string) {
		compare(t, s, "application/x-www-form-urlencoded", body, twinForm(body))
	})
}

func FuzzMultipart(f *testing.F) {
	field := func(header, value string) string {
		return "--x\r\nContent-Disposition: form-data; " + header + "\r\n\r\n" + value + "\r\n"
	}
	name := field(`name="name"`, "Ada")
	for _, parts := range []string{
		name, name + field(`name="age"`, "36") + field(`name="tags"`, "a") + field(`name="tags"`, ""), name + name, name + field(`name="rate"`, "1_0"), name + field(`name="num"`, "1\r\n--"), name + field(`name=on; x=y`, "1"),
		name + field(`name="tags"; filename="a"`, "a"), name + field(`name="tags"; filename=""`, "a"), name + field(`x="name"`, "a"), name + field(`name=""`, ""), field("name=\"name\"\r\nContent-Transfer-Encoding: quoted-printable", "=41=\r\n"),
		strings.Repeat(name, 9), "preamble\r\n" + name, field(`name="other"`, "a"), "--x\r\n\r\n\r\n", strings.ReplaceAll(name, "\r\n", "\n"),
	} {
		f.Add(parts + "--x--\r\n")
	}
	f.Add(name)
	f.Add(name + "--x-- \r\nepilogue")
	s := fuzzing(f)
	f.Fuzz(func(t *testing.T, body string) {
		compare(t, s, "multipart/form-data; boundary=x", body, twinMultipart(body, "x"))
	})
}

func FuzzXMLBody(f *testing.F) {
	for _, seed := range []string{
		`<p><name>Ada</name><age> 36 </age><num>1</num><rate>1.5</rate><on>true</on><tags>a</tags><tags>b</tags><sub><code>a</code><subs><code>b</code></subs></sub></p>`,
		`<?xml version="1.0"?><!-- c --><p xmlns="urn:x"><name><![CDATA[a]]>b&amp;</name></p>`, `<p><name/></p>`, `<p><name>a</name><name>b</name></p>`, `<p a="b"><name>a</name></p>`,
		`<p><name>a</name></p>x`, `<p><name>a</name></p><q/>`, `<!DOCTYPE p><p/>`, `<p><name>a<b/></name></p>`, `<p><name>a</name><extra/></p>`, `<p><ID>x</ID><name>a</name></p>`, `<p>`,
		`<p><name>a</name><sub><code>a</code><subs><code>a</code><subs><code>a</code><subs><code>a</code><subs><code>a</code><subs><code>a</code></subs></subs></subs></subs></subs></sub></p>`,
	} {
		f.Add(seed)
	}
	s := fuzzing(f)
	f.Fuzz(func(t *testing.T, body string) { compare(t, s, "application/xml", body, twinXML(body)) })
}
