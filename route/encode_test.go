package route

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/route/internal/encode"
	"github.com/spillway-go/spillway/route/internal/stdjson"
)

// reply has a field for every way to be written, and for the types left to encoding/json.
type reply struct {
	Text   string `json:"text"`
	Short  string `json:"short,omitempty"`
	Named  colour `json:"na-me.d"`
	N      int64
	I8     int8             `json:"i8,omitempty"`
	U      uint32           `json:"u,omitzero"`
	F      float64          `json:"f"`
	G      float32          `json:"g,omitempty"`
	On     bool             `json:"on,omitempty"`
	At     time.Time        `json:"at"`
	Since  time.Time        `json:"since,omitzero"`
	Until  *time.Time       `json:"until,omitempty"`
	Blob   []byte           `json:"blob"`
	List   []string         `json:"list"`
	Lists  [][]float32      `json:"lists,omitempty"`
	Words  []colour         `json:"words,omitzero"`
	Opt    Optional[string] `json:"opt,omitzero"`
	Opt2   Optional[float64]
	Opt3   Optional[loud]  `json:"opt3,omitzero"`
	OptSub Optional[part]  `json:"optSub"`
	Any    any             `json:"any,omitempty"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Num    json.Number     `json:"num"`
	Map    map[string]part `json:"map,omitempty"`
	Array  [2]int8         `json:"array"`
	Loud   loud            `json:"loud"`
	Quiet  quiet           `json:"quiet"`
	Quiets []quiet         `json:"quiets"`
	Took   time.Duration   `json:"took"`
	Codes  []code          `json:"codes"`
	Next   *reply          `json:"next,omitempty"`
	Rest   []reply         `json:"rest"`
	Nil    *int            `json:"nil"`
	Part   part            `json:"part"`
	Secret string          `json:"-"`
	secret string
	part2
}

type (
	colour string
	loud   string
	quiet  struct{ n int }
	code   uint8
	part   struct {
		A string `json:"a"`
		B *bool  `json:"b,omitempty"`
	}
	part2 struct{ Under_score, Plain uint16 }
)

func (l loud) MarshalText() ([]byte, error)   { return []byte(strings.ToUpper(string(l)) + "<!"), nil }
func (q *quiet) MarshalJSON() ([]byte, error) { return []byte(`{ "quiet" : "&" }`), nil }

// filled makes the nil slices and maps in v empty, where package route writes them itself.
func filled(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[json.Number]() || v.Kind() != reflect.Pointer && !isOptional(v.Type()) && stdjson.Marshals(reflect.PointerTo(v.Type())):
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*chain]() {
			filled(v.Elem())
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			filled(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			filled(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); (f.IsExported() || f.Anonymous) && !(strings.Contains(f.Tag.Get("json"), "omitzero") && v.Field(i).IsZero()) {
				filled(v.Field(i))
			}
		}
	}
}

// asTheLibrary fails unless v, a pointer, is written as encoding/json writes it when no slice is
// nil. It reports whether encoding/json itself was used.
func asTheLibrary(t testing.TB, v any) bool {
	t.Helper()
	w, library := encode.New(reflect.TypeOf(v).Elem(), isOptional)
	var out encode.Output
	out.Init()
	err := out.Encode(w, v)
	byLibrary := slices.Contains(library, reflect.TypeOf(v).Elem())
	if !byLibrary {
		filled(reflect.ValueOf(v))
	}
	want, wantErr := json.Marshal(v)
	if (err != nil) != (wantErr != nil) || err == nil && string(out.Bytes()) != string(want) {
		t.Fatalf("%T:\n got %s, %v\nwant %s, %v", v, string(out.Bytes()), err, want, wantErr)
	}
	return byLibrary
}

func FuzzAnswer(f *testing.F) {
	f.Add("", int64(0), 0.0, int64(0), uint64(0))
	f.Add("a\x00\b\f\n\r\t\"\\<>&\u007f\u2028\u2029é\xff\xed\xa0\x80😀", int64(-1), 1e21, int64(1<<33), ^uint64(0))
	f.Add("plain", int64(math.MinInt64), -1e-7, int64(-62135596801), uint64(0x5555))
	f.Add("x", int64(200), math.NaN(), int64(253402300800), uint64(0xaaaa))
	f.Add("x", int64(9), math.Copysign(0, -1), int64(9), uint64(7))
	f.Fuzz(func(t *testing.T, text string, n int64, x float64, sec int64, flags uint64) {
		depth := 0
		var make func() reply
		make = func() (r reply) {
			next := func() bool { flags = flags>>1 | flags<<63; return flags&1 == 1 }
			at := time.Unix(sec%(1<<40), n&0x3fffffff).UTC()
			if next() {
				at = at.In(time.FixedZone("", int(n%100_000)))
			}
			r.N, r.I8, r.U, r.F, r.G, r.On, r.Took, r.secret, r.Secret = n, int8(n), uint32(n), x, float32(x), next(), time.Duration(n), text, text
			if next() {
				r.Text, r.Short, r.Named, r.Loud, r.Plain = text, text, colour(text), loud(text), uint16(n)
			}
			if next() {
				r.At, r.Since, r.Until = at, at, &at
			}
			if next() {
				r.Blob, r.List, r.Words, r.Codes, r.Quiets = []byte(text), []string{text, "a"}, []colour{}, []code{1, 2}, []quiet{{1}}
				r.Lists = [][]float32{nil, {}, {float32(x), 1}}
			}
			if next() {
				r.Opt, r.Opt2, r.Opt3, r.OptSub = some(text), some(x), some(loud(text)), some(part{A: text, B: &r.On})
			}
			if next() {
				r.Any, r.Map, r.Num, r.Raw = text, map[string]part{text: {A: text}, "a": {}}, "1e5", json.RawMessage(`{"a" : "<"}`)
			}
			if depth++; depth < 4 && next() {
				inner := make()
				r.Next, r.Rest = &inner, []reply{make(), {}}
			}
			return r
		}
		r := make()
		if asTheLibrary(t, &r) {
			t.Fatal("it is the library that writes it")
		}
	})
}

type chain struct {
	Next *chain `json:"next"`
}

func TestAnswersAreWrittenAsTheLibraryWritesThem(t *testing.T) {
	var deep chain
	for range 3000 {
		next := deep
		deep = chain{&next}
	}
	endless := chain{}
	endless.Next = &endless
	type embedsPointer struct{ *part }
	type embedsTwice struct {
		part
		A int `json:"a"`
	}
	type embedsTagged struct {
		part `json:"part"`
	}
	type embedsMethods struct {
		time.Time
		N int
	}
	type embedsOptional struct {
		Name string
		Optional[bool]
	}
	word, list := "<a>", []string{"b"}
	for _, c := range []struct {
		v    any
		ours bool
	}{
		{&word, true}, {&list, true}, {new([]string), true}, {&deep, true}, {&endless, true},
		{new(struct{}), true},
		{&struct{ F float64 }{math.Inf(1)}, true},
		{&struct{ At time.Time }{time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, true},
		{&struct{ P **int }{new(*int)}, true},
		{&struct{ F func() }{}, true}, // encoding fails even for the zero value
		{&struct {
			N int `json:"n,string"`
		}{1}, false},
		{&struct {
			N int `json:"a b"`
		}{1}, false},
		{&struct {
			N int `json:"<"`
		}{1}, false},
		{&struct {
			N int `json:"'n'"`
		}{1}, false},
		{&struct {
			T *time.Time `json:"t,omitzero"`
		}{new(time.Time)}, false},
		{&embedsPointer{&part{A: "a"}}, false},
		{&embedsTwice{part{A: "a"}, 1}, false},
		{&embedsTagged{part{A: "a"}}, false},
		{&embedsMethods{}, false},
		{&embedsOptional{"a", some(true)}, false},
		{new(any), false}, {&map[string]int{"b": 1, "a": 2}, true}, {new(loud), false}, {new(quiet), false}, {new(Optional[part]), true}, {new([4]byte), false},
		{&map[colour][]int{"b<": nil, "\xff": {1}}, true}, {new(map[string]any), true}, {new(map[loud]int), false}, {new([]code), true}, {&Optional[quiet]{Set: true}, true},
	} {
		if library := asTheLibrary(t, c.v); library == c.ours {
			t.Errorf("%T is written by the library: %t", c.v, library)
		}
	}
}
