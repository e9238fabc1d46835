package shape

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

type file struct {
	Name, ContentType string
	Content           []byte
}

type maybe[T any] struct {
	Value T
	Set   bool
}

func (maybe[T]) maybe() {}

var known = Types{Upload: reflect.TypeFor[file](), Optional: func(t reflect.Type) bool { return t.Implements(reflect.TypeFor[interface{ maybe() }]()) }}

type list []list

// The setter of a pointer to what cannot be text once called a nil function.
func TestOnlyWhatCanBeTextHasASetter(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		text string // empty: there is no setter
	}{
		{reflect.TypeFor[string](), "a"}, {reflect.TypeFor[*int](), "1"}, {reflect.TypeFor[maybe[*bool]](), "true"}, {reflect.TypeFor[[]string](), "a"},
		{reflect.TypeFor[*[]maybe[float64]](), "1.5"}, {reflect.TypeFor[[]byte](), "a"}, {reflect.TypeFor[time.Duration](), "1s"}, {reflect.TypeFor[time.Time](), "2006-01-02T15:04:05Z"},
		{typ: reflect.TypeFor[any]()}, {typ: reflect.TypeFor[file]()}, {typ: reflect.TypeFor[maybe[*file]]()}, {typ: reflect.TypeFor[map[string]int]()},
		{typ: reflect.TypeFor[*map[string]int]()}, {typ: reflect.TypeFor[maybe[struct{}]]()}, {typ: reflect.TypeFor[[]struct{}]()},
		{typ: reflect.TypeFor[[][]string]()}, {typ: reflect.TypeFor[[]*[]string]()}, {typ: reflect.TypeFor[list]()}, {typ: reflect.TypeFor[[]list]()},
	} {
		m := newShapes(known, false)
		s, err := m.of(c.typ)
		if m.settle(); err != nil || (s.Set != nil) != (c.text != "") {
			t.Errorf("%s: %v, %v", c.typ, s, err)
		} else if s.Set != nil {
			if fault := s.Set(reflect.New(c.typ).Elem(), c.text); fault != "" {
				t.Errorf("%s: %s", c.typ, fault)
			}
		}
	}
}

func TestCompileNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		request       any
		pattern, want string
	}{
		{struct {
			ID   string      `path:"id"`
			Back maybe[bool] `query:"back" default:"true"`
			Tree list        `json:"tree"`
		}{}, "/{id...}", ""},
		{1, "/", "is no struct"},
		{struct{ A string }{}, "/", "field A: says nowhere"},
		{struct{}{}, "/{id}", "no field comes from {id}"},
		{struct {
			A string `path:"id"`
		}{}, "/", "has no {id}"},
		{struct {
			A string `query:"a" json:"a"`
		}{}, "/", "more than one source"},
		{struct {
			A string `query:"a"`
			B string `query:"a"`
		}{}, "/", "field B: two fields come from query parameter a"},
		{struct {
			A int `query:"a" default:"x"`
		}{}, "/", `default "x": must be a whole number`},
		{struct {
			A int `query:"a" validate:"format=uuid"`
		}{}, "/", "rule format=uuid: int is no string"},
		{struct {
			A file `json:"a"`
		}{}, "/", "an Upload comes from a form"},
		{struct {
			A map[int]string `json:"a"`
		}{}, "/", "are no strings"},
	} {
		_, err := Compile(reflect.TypeOf(c.request), c.pattern, known)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, not %q", c.request, err, c.want)
		}
	}
}
