package route

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The twins decode a fuzzed by means that share nothing with the plan.

// twinJSON decodes by way of tokens and maps.
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

// twinNumber lets encoding/json decide about one number.
func twinNumber(v, into any) bool {
	n, ok := v.(json.Number)
	return ok && json.Unmarshal([]byte(n), into) == nil
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

// twinForm decodes by way of net/url.
func twinForm(body string) *fuzzed {
	values, err := url.ParseQuery(body)
	total := 0
	for _, v := range values {
		total += len(v)
	}
	if err != nil || total > 8 {
		return nil
	}
	var out fuzzed
	for name, v := range values {
		if len(v) > 1 && name != "tags" {
			return nil
		}
		ok := true
		switch name {
		case "name":
			out.Name = v[0]
		case "age":
			out.Age = new(int8)
			n, err := strconv.ParseInt(v[0], 10, 8)
			*out.Age = int8(n)
			ok = err == nil && n >= 0
		case "num":
			n, err := strconv.ParseUint(v[0], 10, 16)
			out.Num = uint16(n)
			ok = err == nil && n <= 1000
		case "rate":
			n, err := strconv.ParseFloat(v[0], 32)
			out.Rate = float32(n)
			ok = err == nil && n-n == 0
		case "on":
			out.On.Value, err = strconv.ParseBool(v[0])
			out.On.Set, ok = true, err == nil
		case "tags":
			out.Tags = v
			ok = len(v) <= 3
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

// tree is an element as encoding/xml itself decodes it when nothing is known.
type tree struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []tree     `xml:",any"`
}

// twinXML decodes a tree, and then looks at it as at a form with a nested part.
func twinXML(body string) *fuzzed {
	d := xml.NewDecoder(strings.NewReader(body))
	var root *tree
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil || strings.Contains(body, "<!") && directive(body) {
			return nil
		}
		switch t := token.(type) {
		case xml.CharData:
			if strings.TrimSpace(string(t)) != "" {
				return nil
			}
		case xml.StartElement:
			if root != nil {
				return nil
			}
			root = new(tree)
			if d.DecodeElement(root, &t) != nil {
				return nil
			}
		}
	}
	if root == nil || !attributes(root.Attrs) {
		return nil
	}
	form := url.Values{}
	var sub *fuzzedSub
	for _, n := range root.Nodes {
		name := n.XMLName.Local
		if name == "sub" {
			if sub != nil || !attributes(n.Attrs) {
				return nil
			}
			if sub = twinElement(n, 2); sub == nil {
				return nil
			}
			continue
		}
		if len(n.Nodes) > 0 || len(n.Attrs) > 0 {
			return nil
		}
		if name != "name" && name != "tags" {
			n.Text = strings.TrimSpace(n.Text)
		}
		form.Add(name, n.Text)
	}
	if len(form["tags"]) > 3 {
		return nil
	}
	out := twinForm(form.Encode())
	if out != nil {
		out.Sub = sub
	}
	return out
}

func twinElement(n tree, depth int) *fuzzedSub {
	var out fuzzedSub
	codes := 0
	for _, c := range n.Nodes {
		switch c.XMLName.Local {
		case "code":
			out.Code = c.Text
			if codes++; codes > 1 || len(c.Nodes) > 0 || len(c.Attrs) > 0 {
				return nil
			}
		case "subs":
			sub := twinElement(c, depth+1)
			if sub == nil || !attributes(c.Attrs) {
				return nil
			}
			out.Subs = append(out.Subs, *sub)
		default:
			return nil
		}
	}
	if depth > fuzzedDepth || out.Code != "a" && out.Code != "b" {
		return nil
	}
	return &out
}

// attributes reports whether there are only namespaces.
func attributes(attrs []xml.Attr) bool {
	for _, a := range attrs {
		if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
			return false
		}
	}
	return true
}

// directive reports whether one is anywhere.
func directive(body string) bool {
	for d := xml.NewDecoder(strings.NewReader(body)); ; {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if _, ok := token.(xml.Directive); ok {
			return true
		}
	}
}
