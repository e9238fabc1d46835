package route

import (
	"mime/multipart"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decimal excludes the hexadecimal numbers and the infinity of strconv.
var decimal = regexp.MustCompile(`^[0-9eE.+-]+$`)

// twinForm decodes with net/url.
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
			ok = utf8.ValidString(v[0])
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
			ok = err == nil && decimal.MatchString(v[0])
		case "on":
			out.On = some(v[0] == "true")
			ok = v[0] == "true" || v[0] == "false"
		case "tags":
			out.Tags = v
			ok = len(v) <= 3
			for _, each := range v {
				ok = ok && utf8.ValidString(each)
			}
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

// twinMultipart decodes with mime/multipart.
func twinMultipart(body, boundary string) *fuzzed {
	if !regexp.MustCompile("(^|\n)--" + regexp.QuoteMeta(boundary) + "--").MatchString(body) {
		return nil // cut off
	}
	parts := 0
	for r := multipart.NewReader(strings.NewReader(body), boundary); ; parts++ {
		if _, err := r.NextRawPart(); err != nil {
			break
		}
	}
	form, err := multipart.NewReader(strings.NewReader(body), boundary).ReadForm(1 << 20)
	if err != nil || len(form.File) > 0 {
		return nil
	}
	for _, values := range form.Value {
		parts -= len(values)
	}
	if parts != 0 { // some had no name
		return nil
	}
	return twinForm(url.Values(form.Value).Encode())
}
