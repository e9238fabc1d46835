package route

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

type fuzzedText struct {
	Text string `body:"text" validate:"required,min=1,max=5,pattern=^[a-z]*$"`
}

type fuzzedNumber struct {
	N *int16 `body:"text" validate:"min=-5"`
}

func FuzzTextBody(f *testing.F) {
	for _, seed := range []string{"", "a", "abcde", "abcdef", "\xff", "é", "a\n", "-5", "-6", "+1", "32768", "1e1", " 1"} {
		f.Add(seed)
	}
	lower := func(r rune) bool { return 'a' <= r && r <= 'z' }
	text := serving(f, func(f func(context.Context, fuzzedText) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	number := serving(f, func(f func(context.Context, fuzzedNumber) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	f.Fuzz(func(t *testing.T, body string) {
		var wantText *fuzzedText
		if n := utf8.RuneCountInString(body); n >= 1 && n <= 5 && strings.TrimFunc(body, lower) == "" {
			wantText = &fuzzedText{body}
		}
		compare(t, text, "text/plain", body, wantText)
		var wantNumber *fuzzedNumber
		if n, err := strconv.ParseInt(body, 10, 64); err == nil && n >= -5 && n < 1<<15 {
			short := int16(n)
			wantNumber = &fuzzedNumber{&short}
		}
		compare(t, number, "text/plain; charset=UTF-8", body, wantNumber)
	})
}

// fuzzedParams has fields from all sources except the body.
type fuzzedParams struct {
	ID   int8             `path:"id" validate:"max=100"`
	Rest string           `path:"rest" validate:"max=5"`
	Q    []uint16         `query:"q" validate:"max=3"`
	S    Optional[string] `query:"s" validate:"min=1,max=5"`
	On   bool             `query:"on" default:"true"`
	H    *float32         `header:"x-h" validate:"min=0"`
	Hs   []string         `header:"X-Hs" validate:"enum=a|b"`
}

// twinParams decodes with net/url; h and hs are the values of a header.
func twinParams(id, rest, query string, h, hs []string) *fuzzedParams {
	n, err := strconv.ParseInt(id, 10, 8)
	if err != nil || n > 100 || utf8.RuneCountInString(rest) > 5 || !utf8.ValidString(rest) {
		return nil
	}
	out := fuzzedParams{ID: int8(n), Rest: rest, On: true}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	total := 0
	for name, v := range values {
		total += len(v)
		if len(v) > 1 && name != "q" {
			return nil
		}
		switch name {
		case "q":
			for _, each := range v {
				n, err := strconv.ParseUint(each, 10, 16)
				if err != nil || len(v) > 3 {
					return nil
				}
				out.Q = append(out.Q, uint16(n))
			}
		case "s":
			if n := utf8.RuneCountInString(v[0]); n < 1 || n > 5 || !utf8.ValidString(v[0]) {
				return nil
			}
			out.S = some(v[0])
		case "on":
			if out.On = v[0] == "true"; !out.On && v[0] != "false" {
				return nil
			}
		default:
			return nil
		}
	}
	if total > 8 || len(h) > 1 {
		return nil
	}
	for _, each := range h {
		x, err := strconv.ParseFloat(each, 32)
		if err != nil || !decimal.MatchString(each) || x < 0 {
			return nil
		}
		short := float32(x)
		out.H = &short
	}
	for each := range strings.SplitSeq(strings.Join(hs, ","), ",") {
		switch each = strings.Trim(each, " \t"); each {
		case "":
		case "a", "b":
			out.Hs = append(out.Hs, each)
		default:
			return nil
		}
	}
	return &out
}

func FuzzParameters(f *testing.F) {
	f.Add("1", "x/y", "q=1&q=2&s=a&on=false", "1.5", "a\nb")
	f.Add("-128", "", "q=1&q=2&q=3&q=4", "", "")
	f.Add("101", "abcdef", "s=%41+%zz", "-1", "c")
	f.Add("+1", "é", "&&q=65535&", "0x1p-2", "a")
	f.Add("1", "", "a;b", "NaN", "")
	f.Add("1", "", "%71=1&s", "1\n1", "")
	f.Add("0", "", "q=1&q=1&q=1&on=0&s=b&x=1", "1e39", "")
	f.Add("0", "", "on=1&on=1", "-0", "")
	f.Add("0", "", "on=0&%zz", "0", "a")
	f.Add("0", "\xff", "s=%ff", "0", " a,,b\n\"a\",b")
	var got fuzzedParams
	h, err := New("POST", "/{id}/{rest...}", func(_ context.Context, p fuzzedParams) (Empty, error) { got = p; return Empty{}, nil }).
		Limits(Limits{Fields: 8}).Handler(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, rest, query, header, headers string) {
		lines := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, "\n")
		}
		run := newHarness("POST", "/", "", "")
		run.request.URL.RawQuery = query
		run.request.Header = http.Header{"X-H": lines(header), "X-Hs": lines(headers)}
		run.request.SetPathValue("id", id)
		run.request.SetPathValue("rest", rest)
		want := twinParams(id, rest, query, lines(header), lines(headers))
		run.run(h)
		if ok := run.status == 204; ok != (want != nil) || !ok && run.status != 400 {
			t.Fatalf("answered %d; the twin says %+v", run.status, want)
		}
		if want != nil && !reflect.DeepEqual(got, *want) {
			t.Fatalf("\n got %+v\nwant %+v", got, *want)
		}
	})
}
