package loadgen

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// template is text with placeholders such as {{.id}}. Filling in a placeholder copies bytes.
type template []piece

// piece is literal text, or a placeholder.
type piece struct {
	text   string
	column int // column of the row, or literal or number
	escape func(string) string
}

const (
	literal = -1
	number  = -2 // the number of the request
)

var placeholder = regexp.MustCompile(`\{\{\s*\.?([\w.-]+)\s*\}\}`)

// compile parses text. Without data there are no placeholders.
func compile(text string, data *Data, escape func(string) string) (template, error) {
	if text == "" {
		return nil, nil
	}
	if data == nil {
		return template{{text: text, column: literal}}, nil
	}
	var t template
	add := func(text string) error {
		if i := strings.Index(text, "{{"); i >= 0 {
			return fmt.Errorf("loadgen: %.40q is no placeholder: want {{.column}} or {{n}}", text[i:])
		}
		if text != "" {
			t = append(t, piece{text: text, column: literal})
		}
		return nil
	}
	end := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		if err := add(text[end:m[0]]); err != nil {
			return nil, err
		}
		column, err := data.column(text[m[2]:m[3]])
		if err != nil {
			return nil, err
		}
		t = append(t, piece{column: column, escape: escape})
		end = m[1]
	}
	return t, add(text[end:])
}

// append appends the text of request n.
func (t template) append(dst []byte, n uint64, row []string) []byte {
	for i := range t {
		p := &t[i]
		switch {
		case p.column == literal:
			dst = append(dst, p.text...)
		case p.column == number:
			dst = strconv.AppendUint(dst, n, 10)
		case p.escape != nil:
			dst = append(dst, p.escape(row[p.column])...)
		default:
			dst = append(dst, row[p.column]...)
		}
	}
	return dst
}

// fixed reports whether every request has the same text.
func (t template) fixed() bool {
	for _, p := range t {
		if p.column != literal {
			return false
		}
	}
	return true
}

// longest returns the most bytes that the text of a request can have, without escapes.
func (t template) longest(data *Data) (most int) {
	rows := [][]string{nil}
	if !t.fixed() && len(data.rows) > 0 {
		rows = data.rows
	}
	for _, row := range rows {
		length := 0
		for i := range t {
			switch p := &t[i]; p.column {
			case literal:
				length += len(p.text)
			case number:
				length += len("18446744073709551615")
			default:
				length += len(row[p.column])
			}
		}
		most = max(most, length)
	}
	return most
}

var (
	toURL   = strings.NewReplacer("{{", "%7B%7B", "}}", "%7D%7D")
	fromURL = strings.NewReplacer("%7B%7B", "{{", "%7D%7D", "}}")
)

// compileTarget makes the request target of a URL; placeholders come behind the host. Values are
// escaped for their place, in the path or behind the ?.
func compileTarget(u *url.URL, data *Data) (template, error) {
	if data == nil {
		return compile(u.RequestURI(), nil, nil)
	}
	path, query, asked := strings.Cut(fromURL.Replace(u.RequestURI()), "?")
	t, err := compile(path, data, url.PathEscape)
	if err != nil || !asked {
		return t, err
	}
	behind, err := compile("?"+query, data, url.QueryEscape)
	return append(t, behind...), err
}

// plainURL rewrites the placeholders in a URL so that the URL can be parsed with them.
func plainURL(s string, data *Data) (string, error) {
	if data == nil {
		return s, nil
	}
	if _, rest, ok := strings.Cut(s, "://"); ok {
		if end := strings.IndexAny(rest, "/?#"); strings.Contains(rest[:max(end, 0)], "{{") || end < 0 && strings.Contains(rest, "{{") {
			return "", fmt.Errorf("loadgen: URL %q: a placeholder belongs behind the host", s)
		}
	}
	return toURL.Replace(placeholder.ReplaceAllString(s, "{{$1}}")), nil
}

// headerLine is a line of a request's header.
type headerLine struct {
	name  string
	value template
}

// appendHeader appends lines as they go on the wire.
func appendHeader(dst []byte, lines []headerLine, n uint64, row []string) []byte {
	for i := range lines {
		dst = append(dst, lines[i].name...)
		dst = append(dst, ": "...)
		dst = lines[i].value.append(dst, n, row)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// checkLines refuses values that would end a header line.
func checkLines(lines []headerLine, data *Data) error {
	for _, line := range lines {
		for _, p := range line.value {
			if p.column < 0 {
				continue
			}
			for i, row := range data.rows {
				if strings.ContainsFunc(row[p.column], isControl) {
					return fmt.Errorf("loadgen: header %s: row %d has a value with a control character: %.40q", line.name, i+1, row[p.column])
				}
			}
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
