package route

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The default of a list was once a single element, "a,b".
func TestADefaultOfAListIsAList(t *testing.T) {
	type in struct {
		Sort []string        `query:"sort" default:"name, born" validate:"enum=name|born,max=2"`
		Size Optional[[]int] `query:"size" default:"1,2"`
		Tags []string        `header:"X-Tags" default:"a"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	if w := do(s, "POST", "/", "", ""); w.Code != 204 || !reflect.DeepEqual(s.got, in{[]string{"name", "born"}, some([]int{1, 2}), []string{"a"}}) {
		t.Errorf("%d %s %+v", w.Code, w.Body, s.got)
	}
	if w := do(s, "POST", "/?sort=born&size=3", "", "", "X-Tags", "b"); w.Code != 204 || !reflect.DeepEqual(s.got, in{[]string{"born"}, some([]int{3}), []string{"b"}}) {
		t.Errorf("%d %s %+v", w.Code, w.Body, s.got)
	}
	text, _ := json.Marshal(documentOf(t, New("POST", "/", func(context.Context, in) (Empty, error) { return Empty{}, nil })))
	doc := string(text)
	for _, want := range []string{`"default":["name","born"]`, `"default":[1,2]`, `"default":["a"]`} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %s in %s", want, doc)
		}
	}
	for want, r := range map[string]*Route{
		`default "x": must be a whole number`: New("GET", "/", func(context.Context, struct {
			A []int `query:"a" default:"1,x"`
		}) (Empty, error) {
			return Empty{}, nil
		}),
		`default "a,c": each must be one of a, b`: New("GET", "/", func(context.Context, struct {
			A []string `query:"a" default:"a,c" validate:"enum=a|b"`
		}) (Empty, error) {
			return Empty{}, nil
		}),
		`default "1,2": must have at most 1 elements`: New("GET", "/", func(context.Context, struct {
			A []int `query:"a" default:"1,2" validate:"max=1"`
		}) (Empty, error) {
			return Empty{}, nil
		}),
	} {
		if err := NewMux(Config{}).Add(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

// min=5 of a duration once meant five nanoseconds, and min=5s was an error.
func TestBoundsOfADurationAreDurations(t *testing.T) {
	type in struct {
		Wait time.Duration            `query:"wait" validate:"min=1s,max=1h"`
		Old  Optional[*time.Duration] `json:"old" validate:"min=1s"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	for query, want := range map[string]string{"1s": "", "60m": "", "999ms": "must be at least 1s", "1h1ns": "must be at most 1h"} {
		w := do(s, "POST", "/?wait="+query, "application/json", `{"old":1000000000}`)
		if (w.Code == 204) != (want == "") || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := do(s, "POST", "/", "application/json", `{"old":999999999}`); w.Code != 400 || !strings.Contains(w.Body.String(), "must be at least 1s") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	text, _ := json.Marshal(documentOf(t, New("POST", "/", func(context.Context, in) (Empty, error) { return Empty{}, nil })))
	doc := string(text)
	if !strings.Contains(doc, `"name":"wait","schema":{"type":"string"}`) || !strings.Contains(doc, `"minimum":1000000000`) {
		t.Error(doc)
	}
	for want, r := range map[string]*Route{
		"rule min=5: a duration is written with its unit": New("GET", "/", func(context.Context, struct {
			A time.Duration `query:"a" validate:"min=5"`
		}) (Empty, error) {
			return Empty{}, nil
		}),
		"rule enum=1|2: time.Duration is no string": New("GET", "/", func(context.Context, struct {
			A time.Duration `query:"a" validate:"enum=1|2"`
		}) (Empty, error) {
			return Empty{}, nil
		}),
	} {
		if err := NewMux(Config{}).Add(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
