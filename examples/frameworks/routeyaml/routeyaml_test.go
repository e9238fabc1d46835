package routeyaml_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/spillway-go/spillway/examples/frameworks/routeyaml"
	"github.com/spillway-go/spillway/route"
)

func TestDocumentsAreRewritten(t *testing.T) {
	for body, want := range map[string]string{
		"":                                   ``,
		"# nothing\n":                        ``,
		"name: Ada\nage: 36\n":               `{"name":"Ada","age":36}`,
		"- 1\n- -2.5\n- 0x1F\n- 1_000\n":     `[1,-2.5,31,1000]`,
		"[true, ~, null, yes, 'true', \"\"]": `[true,null,null,"yes","true",""]`,
		"born: 1815-12-10\n":                 `{"born":"1815-12-10"}`,
		"at: 2026-11-21T18:00:00Z\n":         `{"at":"2026-11-21T18:00:00Z"}`,
		"1: a\ntrue: b\n~: c\n":              `{"1":"a","true":"b","~":"c"}`,
		"a: |\n  x\n  y\n":                   `{"a":"x\ny\n"}`,
		"a: &x k\nb: *x\n":                   `{"a":"k","b":"k"}`,
		"a: 1\na: 2\n":                       `{"a":1,"a":2}`, // package route refuses the duplicate, with a pointer
		"a: 18446744073709551615":            `{"a":18446744073709551615}`,
		"--- {a: !!str 7, b: !!int '8'}\n":   `{"a":"7","b":8}`,
		"a: .5":                              `{"a":0.5}`,
		"a: 0":                               `{"a":0}`,
	} {
		got, err := routeyaml.JSON([]byte(body))
		if err != nil || string(got) != want {
			t.Errorf("%q became %s, %v; want %s", body, got, err, want)
		}
	}
}

func TestWhatJSONDoesNotHaveIsRefused(t *testing.T) {
	for _, body := range []string{
		"a: [", "\ta: 1", "a: 1\n---\nb: 2\n", "a: 1\n...\n[", "? [a]\n: 1\n", "? {a: b}\n: 1\n",
		"a: .inf", "a: .nan", "a: !secret x", "!!set {a}", "!!omap [a: 1]", "!!int x",
		"a: &x {b: 1}\n<<: *x\n", "a: &x [1]\n*x : 2", "a: *unknown", "a: 010", "a: -007", "a: 00.5", "a: \x01", "a: \xff",
	} {
		if got, err := routeyaml.JSON([]byte(body)); err == nil {
			t.Errorf("%q became %s", body, got)
		}
	}
}

// nested returns n nested sequences.
func nested(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }

func TestDepthIsBounded(t *testing.T) {
	if _, err := routeyaml.JSON(nested(1001)); err != nil {
		t.Error(err)
	}
	for _, body := range [][]byte{nested(1002), []byte(strings.Repeat("[", 500_000)), []byte(strings.Repeat("- ", 250_000)), []byte(strings.Repeat("? ", 250_000))} {
		if got, err := routeyaml.JSON(body); err == nil {
			t.Errorf("%.20q became %.20q", body, got)
		}
	}
}

// bomb has ten aliases to ten aliases, and so on.
func bomb(levels int) []byte {
	var b strings.Builder
	b.WriteString("l0: &l0 [x]\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i-1), 10), ","))
	}
	return []byte(b.String())
}

func TestAliasesAreBoundedByTheBody(t *testing.T) {
	if got, err := routeyaml.JSON(bomb(1)); err != nil || len(got) > 8*len(bomb(1)) {
		t.Errorf("%s %v", got, err)
	}
	for _, body := range [][]byte{bomb(4), bomb(9), bomb(1000), []byte("&a [*a]"), []byte("&a {b: *a}"), []byte("a: &a [*a, *a, *a]")} {
		if got, err := routeyaml.JSON(body); err == nil || len(got) > 9*len(body)+16 {
			t.Errorf("%.20q became %d bytes, %v", body, len(got), err)
		}
	}
	// The largest growth without aliases is within the limit.
	if _, err := routeyaml.JSON([]byte("{" + strings.TrimSuffix(strings.Repeat("<,", 999), ",") + "}")); err != nil {
		t.Error(err)
	}
}

type in struct {
	Ward string              `path:"ward"`
	Name string              `json:"name" validate:"required,max=5"`
	Age  route.Optional[int] `json:"age" validate:"max=150"`
	Home struct {
		City string `json:"city"`
	} `json:"home"`
	Free any `json:"free"`
}

func TestARouteBindsYAMLAsItBindsJSON(t *testing.T) {
	var got in
	mux := route.NewMux(route.Config{Codecs: map[string]func([]byte) ([]byte, error){routeyaml.MediaType: routeyaml.JSON}, Limits: route.Limits{Depth: 3}})
	if err := mux.Add(route.New("POST", "/{ward}", func(_ context.Context, req in) (route.Empty, error) {
		got = req
		return route.Empty{}, nil
	})); err != nil {
		t.Fatal(err)
	}
	send := func(body string) (int, string) {
		got = in{}
		r := httptest.NewRequest("POST", "/7", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/yaml; charset=utf-8")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	want := in{Ward: "7", Name: "Ada", Age: route.Optional[int]{Set: true}}
	want.Home.City = "x"
	if code, body := send("name: Ada\nage: 0\nhome: {city: x}\n"); code != 204 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d %s %+v", code, body, got)
	}
	if code, body := send("{name: '', free: [[1]]}"); code != 204 || got.Age.Set {
		t.Errorf("%d %s", code, body)
	}
	for body, fault := range map[string]string{
		"{name: Ada, Ward: 8}":        `{"detail":"is not a member","pointer":"#/Ward"}`,
		"{name: Ada, home: {zip: 1}}": `{"detail":"is not a member","pointer":"#/home/zip"}`,
		"name: Ada\nname: Eve\n":      `{"detail":"is given more than once","pointer":"#/name"}`,
		"age: 151":                    `{"detail":"must be at most 150","pointer":"#/age"}`,
		"age: 15":                     `{"detail":"is required","pointer":"#/name"}`,
		"name: 7":                     `{"detail":"must be a string","pointer":"#/name"}`,
		"{name: Ada, free: [[[1]]]}":  `deep`,
		"name: &a [*a]":               `{"detail":"cannot be decoded","pointer":"#"}`,
	} {
		if code, answer := send(body); code != 400 || !strings.Contains(answer, fault) {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
}

// The twin is the YAML library's own decoder into Go values. It may fail, on aliases or duplicates,
// where JSON does not. Where both succeed, they agree.
func FuzzYAMLBody(f *testing.F) {
	for _, seed := range []string{"a: 1\nb: [x, y]\n", "- {a: ~}\n- 'x'\n", "a: &x [1]\nb: *x\n", "&a [*a]", "? x\n: |\n  y\n", "!!int '7'", "0o17", "1e3", "<<: 1", "{<,&}", string(bomb(3))} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := routeyaml.JSON(body)
		if err != nil || len(doc) == 0 {
			return
		}
		if !json.Valid(doc) || len(doc) > 9*len(body)+16 {
			t.Fatalf("%q became %q", body, doc)
		}
		var want, got any
		if yaml.Unmarshal(body, &want) != nil || !comparable(want) || bytes.Contains(body, []byte("binary")) {
			return
		}
		plain, err := json.Marshal(want)
		if err != nil {
			t.Fatalf("%q became %s, the library has %v", body, doc, want)
		}
		_, _ = json.Unmarshal(plain, &want), json.Unmarshal(doc, &got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %s, the library has %s", body, doc, plain)
		}
	})
}

// comparable reports whether the YAML library has kept the text of all values in v. The library
// loses the text of times, and of keys that are not strings.
func comparable(v any) bool {
	switch v := v.(type) {
	case time.Time, map[any]any:
		return false
	case []any:
		return !slices.ContainsFunc(v, func(v any) bool { return !comparable(v) })
	case map[string]any:
		for _, v := range v {
			if !comparable(v) {
				return false
			}
		}
	}
	return true
}
