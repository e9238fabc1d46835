package route

import (
	"bytes"
	"io"
	"mime/multipart"
	"reflect"
	"strings"
)

// Upload is a file of a multipart form. Its content belongs to the handler.
type Upload struct {
	Name        string // chosen by the client: never use it as a path
	ContentType string // chosen by the client
	Content     []byte
}

// bindForm binds an urlencoded body. As with JSON, the strings of a small body are parts of one
// copy of the body. The whole body is decoded first to make this copy possible.
func (c *core) bindForm(s *scratch, v reflect.Value) {
	length, all := s.unescapeForm(c.limits.Fields)
	text := string(s.body[:length])
	next := 0
	for _, p := range s.pairs {
		if p.wrong != "" {
			s.fault(Fault{In: "form", Detail: p.wrong})
			continue
		}
		var f *field
		if f, next = c.formField(s, text[p.start:p.name], next); f == nil {
			continue
		}
		if f.set == nil {
			s.param(f, "must be a file")
			continue
		}
		value := text[p.value:p.end]
		if len(s.body) > shared {
			value = strings.Clone(value)
		}
		s.text(f, v, value)
	}
	if !all {
		s.breaks(Fault{In: "form", Detail: "there are too many fields"})
	}
}

// pair holds the positions of a name and its value in a decoded form.
type pair struct {
	start, name, value, end int
	wrong                   string
}

// unescapeForm decodes up to most pairs of s.body in place. length is the length of the decoded
// text. all tells whether there were no further pairs.
func (s *scratch) unescapeForm(most int) (length int, all bool) {
	b := s.body
	to := 0
	for from := 0; from < len(b); from++ { // skips the ampersand
		if b[from] == '&' {
			continue
		}
		if len(s.pairs) == most {
			return to, false
		}
		p := pair{start: to, name: -1}
		for ; from < len(b) && b[from] != '&'; from++ {
			c := b[from]
			switch {
			case c == '=' && p.name < 0:
				p.name = to
				continue
			case c == '+':
				c = ' '
			case c == ';':
				p.wrong = semicolon
			case c == '%':
				if from+2 >= len(b) || !isHex(b[from+1]) || !isHex(b[from+2]) {
					p.wrong = badEscape
					continue
				}
				c = unhex(b[from+1])<<4 | unhex(b[from+2])
				from += 2
			}
			b[to] = c
			to++
		}
		p.value, p.end = p.name, to
		if p.name < 0 {
			p.name, p.value = to, to
		}
		s.pairs = append(s.pairs, p)
	}
	return to, true
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// formField returns the field of a name and the index for the next call. It tries the fields near
// next first, because clients usually send them in order.
func (c *core) formField(s *scratch, name string, next int) (*field, int) {
	fields := c.plan.forms
	for i := max(0, next-1); i < min(next+ahead, len(fields)); i++ {
		if fields[i].form == name {
			return fields[i], i + 1
		}
	}
	f := c.plan.form[name]
	if f == nil && !c.ignores(s, name) {
		s.fault(Fault{In: "form", Parameter: short(name), Detail: "is not a field"})
	}
	return f, next
}

// bindMultipart binds a multipart form. The error is the answer to a request with a file that is
// too large.
func (c *core) bindMultipart(s *scratch, boundary string, v reflect.Value) error {
	malformed := Fault{In: "form", Detail: "is not a valid multipart form"}
	if boundary == "" {
		s.breaks(Fault{In: "form", Detail: "Content-Type has no boundary"})
		return nil
	}
	reader := multipart.NewReader(bytes.NewReader(s.body), boundary)
	next := 0
	for parts, fields := 1, 1; ; parts++ {
		part, err := reader.NextPart()
		if err == io.EOF && closed(s.body, boundary) {
			return nil
		}
		switch {
		case err != nil:
			s.breaks(malformed)
			return nil
		case parts > c.limits.Parts:
			s.breaks(Fault{In: "form", Detail: "there are too many parts"})
			return nil
		}
		if part.FileName() == "" {
			if fields++; fields-1 > c.limits.Fields {
				s.breaks(Fault{In: "form", Detail: "there are too many fields"})
				return nil
			}
		}
		content, err := io.ReadAll(part) // bounded, because the body is in memory
		switch {
		case err != nil:
			s.breaks(malformed)
			return nil
		case part.FileName() != "" && int64(len(content)) > c.limits.File:
			return errTooBig
		}
		var f *field
		f, next = c.formField(s, part.FormName(), next)
		switch {
		case f == nil:
		case f.set != nil && part.FileName() != "":
			s.param(f, "must not be a file")
		case f.set != nil:
			s.text(f, v, string(content))
		case part.FileName() == "" && len(content) == 0: // sent by a browser if no file was chosen
		case part.FileName() == "":
			s.param(f, "must be a file")
		default:
			s.upload(f, v, Upload{Name: part.FileName(), ContentType: part.Header.Get("Content-Type"), Content: content})
		}
	}
}

// closed reports whether a multipart form has its closing boundary. multipart.Reader reports no
// error for a form that is cut off in the head of a part. A search would then lose a condition.
func closed(body []byte, boundary string) bool {
	last := []byte("\n--" + boundary + "--")
	return bytes.HasPrefix(body, last[1:]) || bytes.Contains(body, last)
}

// upload sets f, an Upload, a slice of Uploads, a pointer or an Optional.
func (s *scratch) upload(f *field, v reflect.Value, u Upload) {
	many := f.shape.kind == kindList
	if s.present&f.bit != 0 && !many {
		s.param(f, moreThanOnce)
		return
	}
	s.present |= f.bit
	target := f.of(v)
	switch f.shape.kind {
	case kindList:
		target.Set(reflect.Append(target, reflect.ValueOf(u)))
	case kindPointer:
		target.Set(reflect.ValueOf(&u))
	case kindOptional:
		target.Set(reflect.ValueOf(Some(u)))
	default:
		target.Set(reflect.ValueOf(u))
	}
}
