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
	Name        string // as the client calls it: never use it as a path
	ContentType string // as the client says
	Content     []byte
}

// bindForm binds an urlencoded body. As with JSON, the strings of a small one are
// parts of one copy of it.
func (c *core) bindForm(s *scratch, v reflect.Value) {
	rest := string(s.body)
	for n := 1; rest != ""; n++ {
		if n > c.limits.Fields {
			s.breaks(Fault{In: "form", Detail: "there are too many fields"})
			return
		}
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		if pair == "" {
			n--
			continue
		}
		name, value, ok := unescapePair(pair)
		if !ok {
			s.fault(Fault{In: "form", Detail: "is not valid percent-encoding"})
			continue
		}
		if f := c.formField(s, name); f != nil {
			if f.set == nil {
				s.param(f, "must be a file")
				continue
			}
			if len(s.body) > shared {
				value = strings.Clone(value)
			}
			s.text(f, v, value)
		}
	}
}

func (c *core) formField(s *scratch, name string) *field {
	f := c.plan.form[name]
	if f == nil && !c.lax {
		s.fault(Fault{In: "form", Parameter: short(name), Detail: "is not a field"})
	}
	return f
}

// bindMultipart binds a multipart form. The error is what answers the request
// when a part is too large.
func (c *core) bindMultipart(s *scratch, boundary string, v reflect.Value) error {
	malformed := Fault{In: "form", Detail: "is not a valid multipart form"}
	if boundary == "" {
		s.breaks(Fault{In: "form", Detail: "Content-Type has no boundary"})
		return nil
	}
	reader := multipart.NewReader(bytes.NewReader(s.body), boundary)
	for parts, fields := 1, 1; ; parts++ {
		part, err := reader.NextPart()
		if err == io.EOF {
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
		content, err := io.ReadAll(part) // bounded: the body is in memory
		switch {
		case err != nil:
			s.breaks(malformed)
			return nil
		case part.FileName() != "" && int64(len(content)) > c.limits.File:
			return errTooBig
		}
		f := c.formField(s, part.FormName())
		switch {
		case f == nil:
		case f.set != nil && part.FileName() != "":
			s.param(f, "must not be a file")
		case f.set != nil:
			s.text(f, v, string(content))
		case part.FileName() == "":
			s.param(f, "must be a file")
		default:
			s.upload(f, v, Upload{Name: part.FileName(), ContentType: part.Header.Get("Content-Type"), Content: content})
		}
	}
}

// upload sets f, which is an Upload, a slice of them, a pointer or an Optional.
func (s *scratch) upload(f *field, v reflect.Value, u Upload) {
	many := f.shape.kind == kindList
	if s.present&f.bit != 0 && !many {
		s.param(f, "is given more than once")
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
