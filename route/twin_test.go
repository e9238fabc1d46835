package route

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The twins decode a fuzzed independently of the plan.

// twinJSON decodes with tokens and maps.
func twinJSON(body string) *fuzzed {
	if !json.Valid([]byte(body)) || !utf8.ValidString(body) || halfSurrogate(body) {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	v, ok := twinValue(d, 1)
	m, isObject := v.(map[string]any)
	if !ok || !isObject {
		return nil
	}
	var out fuzzed
	for name, v := range m {
		null := v == nil
		text, isText := v.(string)
		switch name {
		case "name":
			if out.Name = text; !isText {
				return nil
			}
		case "age":
			if !null {
				out.Age = new(int8)
				ok = twinNumber(v, out.Age) && *out.Age >= 0
			}
		case "num":
			ok = twinNumber(v, &out.Num) && out.Num <= 1000
		case "rate":
			ok = twinNumber(v, &out.Rate)
		case "on":
			out.On.Value, out.On.Set = v.(bool)
			ok = out.On.Set
		case "tags":
			list, isList := v.([]any)
			if ok = isList || null; isList {
				out.Tags = []string{}
			}
			for _, each := range list {
				text, isText := each.(string)
				ok = ok && isText
				out.Tags = append(out.Tags, text)
			}
			ok = ok && len(list) <= 3
		case "sub":
			if !null {
				out.Sub = twinSub(v)
				ok = out.Sub != nil
			}
		case "extra":
			object, isObject := v.(map[string]any)
			if ok = isObject || null; isObject {
				out.Extra = map[string]int{}
			}
			for k, each := range object {
				var n int
				ok = ok && twinNumber(each, &n)
				out.Extra[k] = n
			}
		case "any":
			raw, _ := json.Marshal(v)
			ok = json.Unmarshal(raw, &out.Any) == nil // numbers too large for float64
		default:
			ok = false
		}
		if !ok {
			return nil
		}
	}
	if n := utf8.RuneCountInString(out.Name); n < 1 || n > 5 {
		return nil
	}
	return &out
}

func twinSub(v any) *fuzzedSub {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	var out fuzzedSub
	for name, v := range m {
		switch name {
		case "code":
			out.Code, _ = v.(string)
		case "subs":
			list, isList := v.([]any)
			if !isList && v != nil {
				return nil
			}
			if isList {
				out.Subs = []fuzzedSub{}
			}
			for _, each := range list {
				sub := twinSub(each)
				if sub == nil {
					return nil
				}
				out.Subs = append(out.Subs, *sub)
			}
		default:
			return nil
		}
	}
	if out.Code != "a" && out.Code != "b" {
		return nil
	}
	return &out
}

// twinNumber decodes one number with encoding/json.
func twinNumber(v, into any) bool {
	n, ok := v.(json.Number)
	if _, float := into.(*float32); ok && !float {
		n = twinInteger(n)
	}
	return ok && json.Unmarshal([]byte(n), into) == nil
}

// twinInteger writes a number as an integer, if it is one.
func twinInteger(n json.Number) json.Number {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if strings.Trim(mantissa, "-0.") == "" {
		return "0"
	}
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || e > 10_000 || e < -10_000) {
		return n // no body has enough digits for an integer
	}
	if r, ok := new(big.Rat).SetString(string(n)); ok && r.IsInt() {
		return json.Number(r.Num().String())
	}
	return n
}

// twinValue reads a value whose names are unique and that is not too deep.
func twinValue(d *json.Decoder, depth int) (any, bool) {
	token, err := d.Token()
	if err != nil {
		return nil, false
	}
	delim, isDelim := token.(json.Delim)
	if !isDelim {
		return token, true
	}
	if depth > fuzzedDepth {
		return nil, false
	}
	list, object := []any{}, map[string]any{}
	for d.More() {
		name := ""
		if delim == '{' {
			token, _ := d.Token()
			name = token.(string)
			if _, twice := object[name]; twice {
				return nil, false
			}
		}
		v, ok := twinValue(d, depth+1)
		if !ok {
			return nil, false
		}
		list, object[name] = append(list, v), v
	}
	_, _ = d.Token()
	if delim == '{' {
		return object, true
	}
	return list, true
}

// halfSurrogate reports whether valid JSON has one half of a surrogate pair.
func halfSurrogate(body string) bool {
	if !strings.Contains(body, `\u`) {
		return false
	}
	high := false
	for i := 0; i < len(body); i++ {
		var unit uint16
		if body[i] == '\\' {
			i++
			if body[i] == 'u' {
				fmt.Sscanf(body[i+1:i+5], "%04x", &unit)
				i += 4
			}
		}
		low := unit >= 0xDC00 && unit <= 0xDFFF
		if low != high {
			return true
		}
		high = unit >= 0xD800 && unit <= 0xDBFF
	}
	return high
}
