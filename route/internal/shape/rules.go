package shape

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway/route/internal/syntax"
)

// Rule is one check of a value that is not a pointer.
type Rule struct {
	OK     func(reflect.Value) bool
	Detail string
}

// ruleTags are the rules as written in the tag, for the OpenAPI document.
type ruleTags struct {
	Min, Max        any // numbers
	Pattern, Format string
	Enum            []string
}

func (f *Field) addRules(tag reflect.StructTag) error {
	rest := tag.Get("validate")
	if text := tag.Get("default"); text != "" {
		if f.Fallback = []string{text}; f.Shape.Bare().Kind == List {
			f.Fallback = slices.Collect(syntax.ListElements(text))
		}
	}
	for rest != "" {
		var word string
		if strings.HasPrefix(rest, "pattern=") {
			word, rest = rest, ""
		} else {
			word, rest, _ = strings.Cut(rest, ",")
		}
		name, arg, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "required":
			f.Required = true
		case "min":
			f.Tags.Min, err = f.addBound(arg, "at least", func(c int) bool { return c >= 0 })
		case "max":
			f.Tags.Max, err = f.addBound(arg, "at most", func(c int) bool { return c <= 0 })
		case "len":
			if k := f.Shape.Bare().Kind; k != String && k != List && k != Map {
				return fmt.Errorf("rule %s: %s has no length", word, f.Shape.Type)
			}
			f.Tags.Max, err = f.addBound(arg, "exactly", func(c int) bool { return c == 0 })
			f.Tags.Min = f.Tags.Max
		case "enum":
			f.Tags.Enum = strings.Split(arg, "|")
			err = f.addEnum(f.Tags.Enum)
		case "format":
			f.Tags.Format = arg
			ok, known := syntax.Formats[arg]
			if !known {
				return fmt.Errorf("rule %s: there are email, uuid, date, date-time and uri", word)
			}
			err = f.addTextRule(func(v reflect.Value) bool { return ok(v.String()) }, "must be "+expectedFormat(arg))
		case "pattern":
			f.Tags.Pattern = arg
			var re *regexp.Regexp
			if re, err = regexp.Compile(arg); err == nil {
				detail := "must match " + arg
				if words := tag.Get("must"); words != "" {
					detail = "must " + words
				}
				match := syntax.Matcher(re)
				err = f.addTextRule(func(v reflect.Value) bool { return match(v.String()) }, detail)
			}
		default:
			return fmt.Errorf("rule %q: there are required, min, max, len, enum, format and pattern", word)
		}
		if err != nil {
			return fmt.Errorf("rule %s: %w", word, err)
		}
	}
	return nil
}

func expectedFormat(format string) string {
	switch format {
	case "email":
		return "an e-mail address"
	case "uuid":
		return "a UUID"
	case "uri":
		return "an absolute URI"
	case "date":
		return "a date such as 2006-01-02"
	}
	return "a time such as 2006-01-02T15:04:05Z"
}

// addBound adds a rule that compares a value, or its length, with arg, and returns arg as a number.
func (f *Field) addBound(arg, words string, ok func(int) bool) (number any, err error) {
	s := f.Shape.Bare()
	var check func(reflect.Value) bool
	verb, unit := "must be ", ""
	switch {
	case s.Type == durationType:
		var d time.Duration
		if d, err = time.ParseDuration(arg); err != nil {
			return nil, errors.New("a duration is written with its unit, such as 1.5s")
		}
		number = int64(d)
		check = func(v reflect.Value) bool { return ok(cmp.Compare(v.Int(), int64(d))) }
	case s.Kind == Int:
		var n int64
		n, err = strconv.ParseInt(arg, 10, 64)
		number = n
		check = func(v reflect.Value) bool { return ok(cmp.Compare(v.Int(), n)) }
	case s.Kind == Uint:
		var n uint64
		n, err = strconv.ParseUint(arg, 10, 64)
		number = n
		check = func(v reflect.Value) bool { return ok(cmp.Compare(v.Uint(), n)) }
	case s.Kind == Float:
		var n float64
		if n, err = strconv.ParseFloat(arg, 64); err == nil && n-n != 0 {
			err = errors.New("not a number")
		}
		number = n
		check = func(v reflect.Value) bool { return ok(cmp.Compare(v.Float(), n)) }
	case s.Kind == String, s.Kind == List, s.Kind == Map:
		var n int
		n, err = strconv.Atoi(arg)
		number, verb = n, "must have "
		if s.Kind == String {
			unit = " characters"
			check = func(v reflect.Value) bool { return ok(cmp.Compare(utf8.RuneCountInString(v.String()), n)) }
			break
		}
		unit = " elements"
		check = func(v reflect.Value) bool { return ok(cmp.Compare(v.Len(), n)) }
		if !ok(1) { // the rule refuses a larger length
			f.MaxElems = min(f.MaxElems, max(n, 0))
		}
	default:
		return nil, fmt.Errorf("%s has no size", s.Type)
	}
	f.Rules = append(f.Rules, Rule{check, verb + words + " " + arg + unit})
	return number, err
}

// addTextRule adds a rule for a string, or for each string in a list.
func (f *Field) addTextRule(ok func(reflect.Value) bool, detail string) error {
	switch s := f.Shape.Bare(); {
	case s.Kind == String:
		f.Rules = append(f.Rules, Rule{ok, detail})
	case s.Kind == List && s.Elem.Kind == String:
		f.Each = append(f.Each, Rule{ok, detail})
	default:
		return fmt.Errorf("%s is no string", s.Type)
	}
	return nil
}

func (f *Field) addEnum(words []string) error {
	detail := "must be one of " + strings.Join(words, ", ")
	switch s := f.Shape.Bare(); {
	case s.Kind == Int && s.Type != durationType:
		var numbers []int64
		for _, w := range words {
			n, err := strconv.ParseInt(w, 10, 64)
			if err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		f.Rules = append(f.Rules, Rule{func(v reflect.Value) bool { return slices.Contains(numbers, v.Int()) }, detail})
		return nil
	default:
		return f.addTextRule(func(v reflect.Value) bool { return slices.Contains(words, v.String()) }, detail)
	}
}

// Violations yields the faults of v, a value that was sent as text. A fault of several elements is
// yielded once, because elements of text have no pointer.
func (f *Field) Violations(v reflect.Value) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range f.Rules {
			if !f.Rules[i].OK(v) && !yield(f.Rules[i].Detail) {
				return
			}
		}
		for i := range f.Each {
			for j := range v.Len() {
				if f.Each[i].OK(v.Index(j)) {
					continue
				}
				if !yield("each " + f.Each[i].Detail) {
					return
				}
				break
			}
		}
	}
}
