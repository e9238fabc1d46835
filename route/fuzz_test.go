package route

import (
	"context"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzzed is bound by the plan, and by a slow decoder that knows only it.
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
		return New("POST", "/", f).Limits(Limits{Depth: fuzzedDepth, Fields: 8}).Untimed()
	}, Config{})
}

// compare sends body, and fails unless it is accepted as the twin accepts it.
func compare(t *testing.T, s *capture[fuzzed], media, body string, want *fuzzed) {
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
		`{"name":"\ud83d\ude00","name":"b"}`, `{"name":"\ud800"}`, `{"name":"A","any":{"a":1,"a":2}}`, `{"name":"A","num":-0}`, `{"name":"A","num":1e2}`, `{"name":"A","rate":1e39}`,
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
	f.Add("name", "Ada", "age", "36")
	f.Add("tags", "a", "tags", "")
	f.Add("name", "\r\n--", "rate", "1_0")
	s := fuzzing(f)
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		if strings.ContainsAny(name1+name2, "\r\n") || strings.ContainsRune(name1+name2, utf8.RuneError) || strings.ContainsAny(name1+name2, "\x00\"\\%") {
			t.Skip("the writer escapes such names")
		}
		media, body := multiparted("name", "Ada", strings.TrimLeft(name1, "@"), value1, strings.TrimLeft(name2, "@"), value2)
		want := twinForm(url.Values{"name": {"Ada"}}.Encode() + "&" + url.QueryEscape(strings.TrimLeft(name1, "@")) + "=" + url.QueryEscape(value1) + "&" + url.QueryEscape(strings.TrimLeft(name2, "@")) + "=" + url.QueryEscape(value2))
		compare(t, s, media, body, want)
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
