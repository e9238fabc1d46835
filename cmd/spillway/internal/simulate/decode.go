package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
)

var comments = regexp.MustCompile(`(?m)^[ \t]*//.*$`)

// uncommented empties the lines that begin with //. No text of JSON spans lines, so none
// of them is inside one.
func uncommented(text []byte) []byte {
	return comments.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), nil) // a byte order mark is no JSON
}

// decode reads a JSON object into the struct that to points to. Unlike encoding/json it
// says in which line something is wrong, and refuses fields that are unknown or given
// twice. A struct with a check method is checked as soon as it is read.
func decode(text []byte, to any) error {
	d := decoder{json.NewDecoder(bytes.NewReader(text)), text}
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		at := int64(0)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset
		}
		return d.wrong(at, err)
	}
	return d.value(reflect.ValueOf(to).Elem())
}

// decoder reads text that is known to be JSON, so that no token is an error.
type decoder struct {
	*json.Decoder
	text []byte
}

// wrong adds the line to an error.
func (d decoder) wrong(at int64, err error) error {
	return fmt.Errorf("line %d: %w", 1+bytes.Count(d.text[:min(at, int64(len(d.text)))], []byte("\n")), err)
}

func (d decoder) value(v reflect.Value) error {
	if _, own := v.Addr().Interface().(json.Unmarshaler); !own {
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			return d.value(v.Elem())
		case reflect.Struct:
			return d.object(v)
		case reflect.Slice:
			return d.list(v)
		}
	}
	var raw json.RawMessage
	_ = d.Decode(&raw)
	var err error
	begin := d.InputOffset() - int64(len(raw))
	switch to := v.Addr().Interface().(type) {
	case *time.Duration:
		*to, err = duration(raw)
	case *sim.Balancer:
		*to, err = balancer(raw)
	default:
		err = json.Unmarshal(raw, to)
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || string(raw) == "null" {
		err = fmt.Errorf("%.40s does not belong here: want %s", raw, kinds[v.Kind()])
	}
	if err != nil {
		return d.wrong(begin, err)
	}
	return nil
}

// duration reads text such as "1.5s".
func duration(text []byte) (time.Duration, error) {
	var s string
	err := json.Unmarshal(text, &s)
	d, wrong := time.ParseDuration(s)
	if err != nil || wrong != nil {
		return 0, fmt.Errorf(`%.40s is no duration: want text such as "1.5s" or "200ms"`, text)
	}
	return d, nil
}

// kinds in the words of JSON.
var kinds = map[reflect.Kind]string{
	reflect.String: "text in quotes", reflect.Bool: "true or false", reflect.Float64: "a number", reflect.Int: "a whole number",
	reflect.Uint64: "a whole number that is not negative", reflect.Int64: `text such as "1.5s"`, reflect.Int8: "the name of a priority", reflect.Uint8: "the name of a balancer",
	reflect.Struct: `a number, or text such as "1.5x"`,
}

func (d decoder) object(v reflect.Value) error {
	if err := d.open('{', "an object in braces"); err != nil {
		return err
	}
	begin := d.InputOffset()
	known := fieldNames(v.Type())
	given := map[string]bool{}
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string) // the key of an object is nothing else
		field := slices.Index(known, name)
		switch {
		case field < 0:
			return d.wrong(d.InputOffset(), fmt.Errorf("unknown field %.40q: want %s", name, list(known, "nothing")))
		case given[name]:
			return d.wrong(d.InputOffset(), fmt.Errorf("the field %q is given twice", name))
		}
		given[name] = true
		if err := d.value(v.Field(field)); err != nil {
			return err
		}
	}
	_, _ = d.Token() // the closing brace
	if c, ok := v.Addr().Interface().(interface{ check() error }); ok {
		if err := c.check(); err != nil {
			return d.wrong(begin, err)
		}
	}
	return nil
}

func (d decoder) list(v reflect.Value) error {
	if err := d.open('[', "a list in brackets"); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for d.More() {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(element); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
	}
	_, _ = d.Token() // the closing bracket
	return nil
}

// open reads the delimiter that must come now.
func (d decoder) open(want json.Delim, what string) error {
	if token, _ := d.Token(); token != want {
		return d.wrong(d.InputOffset(), fmt.Errorf("want %s here", what))
	}
	return nil
}

var words = regexp.MustCompile(`([a-z])([A-Z])`)

// fieldNames are the names of a struct's fields in JSON, in their order: max_backoff of a field
// MaxBackoff, unless the field has a tag.
func fieldNames(t reflect.Type) (names []string) {
	for field := range t.Fields() {
		names = append(names, cmp.Or(field.Tag.Get("json"), strings.ToLower(words.ReplaceAllString(field.Name, "${1}_${2}"))))
	}
	return names
}

// list writes names as people do: a, b or c.
func list(names []string, none string) string {
	switch last := len(names) - 1; last {
	case -1:
		return none
	case 0:
		return names[0]
	default:
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
}
