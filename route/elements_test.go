package route

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/route/internal/shape"
)

type wide struct {
	Rest [400]byte `json:"-"` // the same on 32 bits
	Name string    `json:"name"`
	Tags []wide    `json:"tags" xml:"tags" validate:"max=2"`
}

// A list was once decoded to its end before its max was checked: a megabyte of empty elements took
// 593 MiB.
func TestWhatIsPastTheMostElementsCostsNoMemoryAlloc(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	type in struct {
		List []wide          `json:"list" xml:"list" validate:"max=10"`
		Two  Optional[[]int] `json:"two" validate:"len=2"`
		Map  map[string]wide `json:"map" validate:"max=10"`
		Sub  *wide           `json:"sub"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	fill := func(before, each, after string) string {
		n := (1<<20 - len(before) - len(after)) / len(each)
		return before + strings.TrimSuffix(strings.Repeat(each, n), ",") + after
	}
	for _, c := range []struct{ media, body, fault string }{
		{"application/json", fill(`{"list":[`, `{},`, `]}`), `[{"detail":"must have at most 10 elements","pointer":"#/list"}]`},
		{"application/json", fill(`{"list":[`, `{"name":""},`, `]}`), `[{"detail":"must have at most 10 elements","pointer":"#/list"}]`},
		{"application/json", fill(`{"list":[`, `[],`, `]}`), `"pointer":"#/list/9"},{"detail":"must have at most 10 elements","pointer":"#/list"}]`},
		{"application/json", fill(`{"two":[`, `1,`, `]}`), `[{"detail":"must have exactly 2 elements","pointer":"#/two"}]`},
		{"application/json", fill(`{"sub":{"tags":[`, `{},`, `]}}`), `[{"detail":"must have at most 2 elements","pointer":"#/sub/tags"}]`},
		{"application/json", `{"map":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{},"i":{},"j":{},"k":{},"l":{}}}`, `[{"detail":"must have at most 10 elements","pointer":"#/map"}]`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := do(s, "POST", "/", c.media, c.body)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; w.Code != 400 || !strings.Contains(w.Body.String(), c.fault) || took > 8<<20 {
			t.Errorf("%.30s: %d %.500s, %d bytes allocated", c.body, w.Code, w.Body, took)
		}
	}
	// encoding/xml itself allocates for each element.
	w := do(s, "POST", "/", "application/xml", "<p>"+strings.Repeat("<list/>", 11)+"</p>")
	if want := `[{"detail":"must have at most 10 elements","pointer":"#/list"}]`; w.Code != 400 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for media, body := range map[string]string{
		"application/json": `{"list":[` + strings.Repeat("{},", 9) + `{}],"two":[1,2]}`,
		"application/xml":  "<p>" + strings.Repeat("<list/>", 10) + "</p>",
	} {
		if w := do(s, "POST", "/", media, body); w.Code != 204 || len(s.got.List) != 10 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// The memory of values that take a few bytes each in the body must be limited without a max, too.
func TestDecodingTakesALimitedMultipleOfTheBodyAlloc(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	type in struct {
		List []wide          `json:"list" xml:"list"`
		Ptrs []*wide         `json:"ptrs"`
		Map  map[string]wide `json:"map"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	var members strings.Builder
	for i := range 90_000 {
		fmt.Fprintf(&members, `"%d":{},`, i)
	}
	const n = 1<<20/3 - 10
	for _, c := range []struct {
		media, body, at string
		most            uint64
	}{
		{"application/json", `{"list":[` + strings.Repeat("{},", n) + `{}]}`, "#/list", 96 << 20},
		{"application/json", `{"ptrs":[` + strings.Repeat("{},", n) + `{}]}`, "#/ptrs/", 96 << 20},
		{"application/json", `{"map":{` + members.String() + `"":{}}}`, "#/map/", 96 << 20},
		{"application/xml", "<p>" + strings.Repeat("<list/>", n*3/8) + "</p>", "#/list", 256 << 20}, // most of it by encoding/xml
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := do(s, "POST", "/", c.media, c.body)
		runtime.ReadMemStats(&after)
		want := `[{"detail":"takes too much memory","pointer":"` + c.at
		if took := after.TotalAlloc - before.TotalAlloc; w.Code != 400 || !strings.Contains(w.Body.String(), want) || took > c.most {
			t.Errorf("%.30s: %d %.500s, %d bytes allocated", c.body, w.Code, w.Body, took)
		}
	}
	four := 4 * int64(reflect.TypeFor[wide]().Size()) // the initial capacity of a list
	for past, want := range []int{204, 400} {
		s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route {
			return New("POST", "/", f).Limits(Limits{memory: four - int64(past)})
		}, Config{})
		for media, body := range map[string]string{"application/json": `{"list":[{},{},{},{}]}`, "application/xml": "<p><list/><list/><list/><list/></p>"} {
			if w := do(s, "POST", "/", media, body); w.Code != want {
				t.Errorf("%s, limit - %d: %d %s", media, past, w.Code, w.Body)
			}
		}
	}
}

// An element that was not a string once had a second fault, for the enum, and the fault of a wrong
// element did not name the element.
func TestEachBadElementIsToldOnceWhereItIs(t *testing.T) {
	type in struct {
		Kinds []string            `json:"kinds" form:"kinds" xml:"kinds" validate:"enum=a|b,max=4"`
		Dates *[]string           `json:"dates" xml:"dates" validate:"format=date"`
		Mails Optional[[]string]  `json:"mails" validate:"format=email"`
		Plain map[string][]string `json:"plain"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	for _, c := range []struct{ media, body, want string }{
		{"application/json", `{"kinds":["a",1,"c",null],"dates":["x"],"mails":[{}]}`,
			`[{"detail":"must be a string","pointer":"#/kinds/1"},{"detail":"must be one of a, b","pointer":"#/kinds/2"},{"detail":"must not be null","pointer":"#/kinds/3"},` +
				`{"detail":"must be a date such as 2006-01-02","pointer":"#/dates/0"},{"detail":"must be a string","pointer":"#/mails/0"}]`},
		{"application/json", `{"kinds":[1,2,3,4,5]}`,
			`[{"detail":"must be a string","pointer":"#/kinds/0"},{"detail":"must be a string","pointer":"#/kinds/1"},{"detail":"must be a string","pointer":"#/kinds/2"},` +
				`{"detail":"must be a string","pointer":"#/kinds/3"},{"detail":"must have at most 4 elements","pointer":"#/kinds"}]`},
		{"application/xml", `<p><kinds>a</kinds><kinds><x/></kinds><kinds>c</kinds><dates>x</dates></p>`,
			`[{"detail":"must be text","pointer":"#/kinds/1"},{"detail":"must be one of a, b","pointer":"#/kinds/2"},{"detail":"must be a date such as 2006-01-02","pointer":"#/dates/0"}]`},
		{"application/x-www-form-urlencoded", `kinds=a&kinds=c&kinds=d`, `[{"detail":"each must be one of a, b","parameter":"kinds","in":"form"}]`},
	} {
		if w := do(s, "POST", "/", c.media, c.body); w.Code != 400 || !strings.Contains(w.Body.String(), `"errors":`+c.want+"}") {
			t.Errorf("%s: %d\n got %s\nwant %s", c.body, w.Code, w.Body, c.want)
		}
	}
}

// In JSON Schema 1.0 is an integer, so clients that read the OpenAPI document may send it.
func TestAnIntegerIsOneHoweverItIsWritten(t *testing.T) {
	type in struct {
		N int64  `json:"n"`
		U uint8  `json:"u"`
		P *int16 `json:"p"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	for text, want := range map[string]int64{
		"1.0": 1, "1e2": 100, "-1.50E1": -15, "0.0015e4": 15, "9223372036854775807.0": 1<<63 - 1, "-0": 0, "-0.0": 0, "0e99999999999999999999": 0, "100e-2": 1, "12300e-00002": 123,
	} {
		if w := do(s, "POST", "/", "application/json", `{"n":`+text+`}`); w.Code != 204 || s.got.N != want {
			t.Errorf("%s: %d %s, %d", text, w.Code, w.Body, s.got.N)
		}
	}
	for body, want := range map[string]string{
		`{"n":1.5}`: shape.WholeNumber, `{"n":1e-1}`: shape.WholeNumber, `{"n":1e-99999999999999999999}`: shape.WholeNumber, `{"n":1e99999999999999999999}`: shape.OutOfRange, `{"n":9223372036854775808.0}`: shape.OutOfRange,
		`{"u":256e0}`: shape.OutOfRange, `{"u":-1.0}`: shape.NaturalNumber, `{"u":0.1}`: shape.NaturalNumber, `{"p":3.2768e4}`: shape.OutOfRange,
	} {
		if w := do(s, "POST", "/", "application/json", body); w.Code != 400 || !strings.Contains(w.Body.String(), `"`+want+`"`) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := do(s, "POST", "/", "application/json", `{"u":-0,"p":-3.2768e4}`); w.Code != 204 || *s.got.P != -32768 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
