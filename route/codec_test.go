package route

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/wire"
)

// single stands for YAML: JSON with ' for ".
func single(body []byte) ([]byte, error) {
	if bytes.Contains(body, []byte{'"'}) {
		return nil, errors.New("a double quote")
	}
	return bytes.ReplaceAll(body, []byte("'"), []byte{'"'}), nil
}

func TestATranscodedBodyIsBoundAsJSONIs(t *testing.T) {
	type in struct {
		ID   string        `path:"id"`
		Name string        `json:"name" validate:"required,max=5"`
		Age  Optional[int] `json:"age" validate:"max=150"`
		Sub  *struct {
			City string `json:"city"`
		} `json:"sub"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/{id}", f) }, Config{Codecs: map[string]codec{"application/x-single": single}})
	for _, body := range []string{
		`{'name':'','age':0}`, `{'name':'Ada','sub':{'city':'x'}}`, `{}`, `{'age':null,'name':'Augusta'}`, `{'ID':'stolen','name':'Ada'}`,
		`{'name':'a','name':'b'}`, `{'name':7,'sub':{'zip':1}}`, `{'sub':{'sub':[[[1]]]}}`, `{'name':'Ada'`, ``, `{'name':'Ada'} x`,
	} {
		s.got = in{}
		want := do(s, "POST", "/7", "application/json", strings.ReplaceAll(body, "'", `"`))
		bound := s.got
		s.got = in{}
		got := do(s, "POST", "/7", "application/x-single", body)
		if got.Code != want.Code || got.Body.String() != want.Body.String() || s.got.Name != bound.Name || s.got.Age != bound.Age || s.got.ID != bound.ID {
			t.Errorf("%s: %d %s %+v, as JSON %d %s %+v", body, got.Code, got.Body, s.got, want.Code, want.Body, bound)
		}
	}
	if w := do(s, "POST", "/7", "application/x-single", `{"name":"Ada"}`); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"detail":"cannot be decoded","pointer":"#"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A body must not stay in the pool, whether the body is longer or shorter than its JSON.
func TestNothingOfATranscodedBodyIsLeftInThePool(t *testing.T) {
	for _, doc := range []string{"1", strings.Repeat(" ", 99) + "1"} {
		var s wire.Scratch
		s.Body = append(s.Body, "a secret"...)
		was := s.Body[:8]
		p := must(shape.Compile(reflect.TypeFor[struct {
			N int `body:"json"`
		}](), "/", ownTypes))
		c := &core{plan: p, binder: wire.Binder{Plan: p, Limits: wire.Limits{Depth: defaults.Depth}}}
		c.bindTranscoded(&s, func([]byte) ([]byte, error) { return []byte(doc), nil }, reflect.New(p.Type).Elem())
		s.Clear()
		if string(was) != strings.Repeat("\x00", 8) {
			t.Errorf("%q", was)
		}
	}
}
