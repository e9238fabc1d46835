package shape

import (
	"encoding"
	"fmt"
	"net/textproto"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway/route/internal/syntax"
)

// setter sets a value from text. For invalid text it returns the expected form, without the text.
type setter func(v reflect.Value, s string) (fault string)

func canonical(header string) string { return textproto.CanonicalMIMEHeaderKey(header) }

// setterOf returns the setter of a shape. many tells whether the setter accepts more than one text.
func setterOf(s *Shape) (set setter, many bool, err error) {
	switch s.Kind {
	case Pointer:
		elem, many, err := setterOf(s.Elem)
		if err != nil {
			return nil, false, err
		}
		return func(v reflect.Value, text string) string {
			if v.IsNil() {
				v.Set(reflect.New(s.Elem.Type))
			}
			return elem(v.Elem(), text)
		}, many, nil
	case Optional:
		elem, many, err := setterOf(s.Elem)
		if err != nil {
			return nil, false, err
		}
		return func(v reflect.Value, text string) string {
			v.Field(1).SetBool(true)
			return elem(v.Field(0), text)
		}, many, nil
	case List:
		if s.Elem.Bare().Kind == List { // perhaps s itself, in a recursive type
			break
		}
		elem, _, err := setterOf(s.Elem)
		if err != nil {
			return nil, false, err
		}
		return func(v reflect.Value, text string) string {
			n := v.Len()
			if n == v.Cap() {
				v.Grow(max(4, n))
			}
			v.SetLen(n + 1)
			return elem(v.Index(n), text)
		}, true, nil
	case String:
		return setString, false, nil
	case Bool:
		return setBool, false, nil
	case Int:
		if s.Type == durationType {
			return setDuration, false, nil
		}
		return setInt, false, nil
	case Uint:
		return setUint, false, nil
	case Float:
		return setFloat, false, nil
	case Custom:
		if s.Bytes {
			return func(v reflect.Value, text string) string { v.SetBytes([]byte(text)); return "" }, false, nil
		}
		switch {
		case s.Type == timeType:
			return func(v reflect.Value, text string) string {
				t, ok := syntax.ParseTime(text)
				if !ok {
					return s.Must
				}
				*v.Addr().Interface().(*time.Time) = t
				return ""
			}, false, nil
		case s.Type == numberType:
			return func(v reflect.Value, text string) string {
				if !syntax.IsNumber(text) {
					return s.Must
				}
				v.SetString(text)
				return ""
			}, false, nil
		case reflect.PointerTo(s.Type).Implements(textType):
			return func(v reflect.Value, text string) string {
				if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) != nil || !s.Encodable(v) {
					return s.Must
				}
				return ""
			}, false, nil
		}
	}
	return nil, false, fmt.Errorf("%s cannot be text", s.Type)
}

func setString(v reflect.Value, text string) string {
	if !utf8.ValidString(text) {
		return "must be UTF-8"
	}
	v.SetString(text)
	return ""
}

func setBool(v reflect.Value, text string) string {
	if text != "true" && text != "false" { // as the OpenAPI document says
		return "must be true or false"
	}
	v.SetBool(text == "true")
	return ""
}

// Faults that the decoder of JSON has in common with the setters.
const (
	WholeNumber   = "must be a whole number"
	NaturalNumber = "must be a whole number that is not negative"
	OutOfRange    = "is out of range"
)

func setInt(v reflect.Value, text string) string {
	n, err := strconv.ParseInt(text, 10, v.Type().Bits())
	if err != nil {
		return numberFault(err, WholeNumber)
	}
	v.SetInt(n)
	return ""
}

func setUint(v reflect.Value, text string) string {
	n, err := strconv.ParseUint(text, 10, v.Type().Bits())
	if err != nil {
		return numberFault(err, NaturalNumber)
	}
	v.SetUint(n)
	return ""
}

func setFloat(v reflect.Value, text string) string {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && strings.IndexByte("+-.eE", c) < 0 { // no NaN, infinity or hexadecimal
			return "must be a number"
		}
	}
	n, err := strconv.ParseFloat(text, v.Type().Bits())
	if err != nil {
		return numberFault(err, "must be a number")
	}
	v.SetFloat(n)
	return ""
}

func setDuration(v reflect.Value, text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return "must be a duration such as 1.5s"
	}
	v.SetInt(int64(d))
	return ""
}

func numberFault(err error, otherwise string) string {
	if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
		return OutOfRange
	}
	return otherwise
}
