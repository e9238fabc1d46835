package wire

import (
	"bytes"
	"io"
	"mime/multipart"
	"reflect"
	"strings"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/syntax"
)

// Form binds an urlencoded body. As with JSON, the strings of a small body are parts of one
// copy of the body. The whole body is decoded first to make this copy possible.
func (b *Binder) Form(s *Scratch, v reflect.Value) {
	length, all := s.unescapeForm(b.Limits.Fields)
	text := string(s.Body[:length])
	next := 0
	for _, p := range s.pairs {
		if p.wrong != "" {
			s.Add(Fault{In: "form", Detail: p.wrong})
			continue
		}
		var f *shape.Field
		if f, next = b.formField(s, text[p.start:p.name], next); f == nil {
			continue
		}
		if f.Set == nil {
			s.addParam(f, "must be a file")
			continue
		}
		value := text[p.value:p.end]
		if len(s.Body) > maxShared {
			value = strings.Clone(value)
		}
		s.text(f, v, value)
	}
	if !all {
		s.AddFatal(Fault{In: "form", Detail: "there are too many fields"})
	}
}

// pair holds the positions of a name and its value in a decoded form.
type pair struct {
	start, name, value, end int
	wrong                   string
}

// unescapeForm decodes up to most pairs of s.Body in place. length is the length of the decoded
// text. all tells whether there were no further pairs.
func (s *Scratch) unescapeForm(most int) (length int, all bool) {
	b := s.Body
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
				p.wrong = Semicolon
			case c == '%':
				if from+2 >= len(b) || !syntax.IsHex(b[from+1]) || !syntax.IsHex(b[from+2]) {
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
func (b *Binder) formField(s *Scratch, name string, next int) (*shape.Field, int) {
	fields := b.Plan.Forms
	for i := max(0, next-1); i < min(next+lookahead, len(fields)); i++ {
		if fields[i].Form == name {
			return fields[i], i + 1
		}
	}
	f := b.Plan.Form[name]
	if f == nil && !b.ignores(s, name) {
		s.Add(Fault{In: "form", Parameter: short(name), Detail: "is not a field"})
	}
	return f, next
}

// Multipart binds a multipart form. tooBig tells whether a file is larger than the limit.
func (b *Binder) Multipart(s *Scratch, boundary string, v reflect.Value) (tooBig bool) {
	malformed := Fault{In: "form", Detail: "is not a valid multipart form"}
	if boundary == "" {
		s.AddFatal(Fault{In: "form", Detail: "Content-Type has no boundary"})
		return false
	}
	reader := multipart.NewReader(bytes.NewReader(s.Body), boundary)
	next := 0
	for parts, fields := 1, 1; ; parts++ {
		part, err := reader.NextPart()
		if err == io.EOF && closed(s.Body, boundary) {
			return false
		}
		switch {
		case err != nil:
			s.AddFatal(malformed)
			return false
		case parts > b.Limits.Parts:
			s.AddFatal(Fault{In: "form", Detail: "there are too many parts"})
			return false
		}
		if part.FileName() == "" {
			if fields++; fields-1 > b.Limits.Fields {
				s.AddFatal(Fault{In: "form", Detail: "there are too many fields"})
				return false
			}
		}
		content, err := io.ReadAll(part) // bounded, because the body is in memory
		switch {
		case err != nil:
			s.AddFatal(malformed)
			return false
		case part.FileName() != "" && int64(len(content)) > b.Limits.File:
			return true
		}
		var f *shape.Field
		f, next = b.formField(s, part.FormName(), next)
		switch {
		case f == nil:
		case f.Set != nil && part.FileName() != "":
			s.addParam(f, "must not be a file")
		case f.Set != nil:
			s.text(f, v, string(content))
		case part.FileName() == "" && len(content) == 0: // sent by a browser if no file was chosen
		case part.FileName() == "":
			s.addParam(f, "must be a file")
		default:
			s.upload(f, v, upload{part.FileName(), part.Header.Get("Content-Type"), content})
		}
	}
}

// closed reports whether a multipart form has its closing boundary. multipart.Reader reports no
// error for a form that is cut off in the head of a part. A search would then lose a condition.
func closed(body []byte, boundary string) bool {
	last := []byte("\n--" + boundary + "--")
	return bytes.HasPrefix(body, last[1:]) || bytes.Contains(body, last)
}

// upload has the fields of shape.Types.Upload, the type to which uploads are converted.
type upload struct {
	Name        string
	ContentType string
	Content     []byte
}

// upload sets f: an upload, a slice of uploads, a pointer or an Optional.
func (s *Scratch) upload(f *shape.Field, v reflect.Value, u upload) {
	many := f.Shape.Kind == shape.List
	if s.present&f.Bit != 0 && !many {
		s.addParam(f, MoreThanOnce)
		return
	}
	s.present |= f.Bit
	target := f.Of(v)
	for of := f.Shape; ; of = of.Elem {
		switch of.Kind {
		case shape.List:
			target.Grow(1)
			target.SetLen(target.Len() + 1)
			target = target.Index(target.Len() - 1)
			continue
		case shape.Pointer:
			target.Set(reflect.New(of.Elem.Type))
			target = target.Elem()
			continue
		case shape.Optional:
			target.Field(1).SetBool(true)
			target = target.Field(0)
			continue
		}
		target.Set(reflect.ValueOf(u).Convert(of.Type))
		return
	}
}
