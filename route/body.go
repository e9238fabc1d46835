package route

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/wire"
)

var (
	errNoType  = &Problem{Status: http.StatusBadRequest, Type: "missing-content-type", Detail: "say in Content-Type how the body is written"}
	errTooBig  = &Problem{Status: http.StatusRequestEntityTooLarge, Type: "body-too-large", Detail: "the body is larger than this operation accepts"}
	errTooSlow = &Problem{Status: http.StatusRequestTimeout, Type: "body-too-slow", Detail: "the body did not arrive in time"}
	errCoded   = &Problem{Status: http.StatusUnsupportedMediaType, Type: "unsupported-media-type", Detail: "send the body as it is, without a Content-Encoding"}
	errCut     = &Problem{Status: http.StatusBadRequest, Type: "incomplete-body", Detail: "the body ended early"}
)

// bindBody reads the body and binds its members. A request without content and Content-Type is
// accepted if no body field is required.
func (c *core) bindBody(s *wire.Scratch, w http.ResponseWriter, r *http.Request, v reflect.Value) (wire.Kind, error) {
	kind, params, toJSON, err := c.kindOf(r.Header)
	if err == errNoType && c.plan.Optional && r.ContentLength <= 0 {
		if err := c.read(s, w, r); err != nil || len(s.Body) == 0 {
			return wire.None, err
		}
		return wire.None, errNoType
	}
	if err != nil {
		c.limits.setReadDeadline(w, r)
		return kind, err
	}
	if err := c.read(s, w, r); err != nil {
		return kind, err
	}
	switch kind {
	case wire.JSON:
		if toJSON != nil {
			c.bindTranscoded(s, toJSON, v)
		} else {
			c.binder.JSON(s, v)
		}
	case wire.Form:
		c.binder.Form(s, v)
	case wire.Multipart:
		if tooBig := c.binder.Multipart(s, params["boundary"], v); tooBig {
			return kind, errTooBig
		}
	case wire.XML:
		c.binder.XML(s, v)
	case wire.Text:
		c.binder.Text(s, v)
	}
	return kind, nil
}

// kindOf derives the body's kind from the headers, and the codec that rewrites the body, if any. The usual Content-Type costs no allocation.
func (c *core) kindOf(h http.Header) (wire.Kind, map[string]string, codec, error) {
	accepts := &c.plan.Accepts
	coding, types := h["Content-Encoding"], h["Content-Type"]
	switch {
	case len(types) > 1:
		return wire.None, nil, nil, duplicateHeader("Content-Type")
	case len(coding) > 1:
		return wire.None, nil, nil, duplicateHeader("Content-Encoding")
	case len(coding) == 1 && !strings.EqualFold(coding[0], "identity"):
		return wire.None, nil, nil, errCoded
	}
	contentType := ""
	if len(types) == 1 {
		contentType = types[0]
	}
	var params map[string]string
	media := contentType
	switch {
	case contentType == "":
		return wire.None, nil, nil, errNoType
	case accepts.JSON && slices.Contains(c.json, contentType):
		return wire.JSON, nil, nil, nil
	case contentType != "application/x-www-form-urlencoded":
		var err error
		if media, params, err = mime.ParseMediaType(contentType); err != nil {
			return wire.None, nil, nil, c.unsupported
		}
		if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
			return wire.None, nil, nil, c.unsupported
		}
	}
	switch {
	case accepts.JSON && slices.Contains(c.json, media):
		return wire.JSON, nil, nil, nil
	case media == "application/x-www-form-urlencoded" && accepts.Form:
		return wire.Form, nil, nil, nil
	case media == "multipart/form-data" && accepts.Form:
		return wire.Multipart, params, nil, nil
	case (media == "application/xml" || media == "text/xml") && accepts.XML:
		return wire.XML, nil, nil, nil
	case media == "text/plain" && accepts.Text:
		return wire.Text, nil, nil, nil
	}
	if accepts.JSON {
		if toJSON := c.cfg.Codecs[media]; toJSON != nil {
			return wire.JSON, params, toJSON, nil
		}
	}
	return wire.None, nil, nil, c.unsupported
}

// duplicateHeader refuses a duplicate of a header that determines how the body is read. A proxy may
// have used the other value.
func duplicateHeader(header string) error {
	return &InvalidError{Faults: []Fault{{In: "header", Parameter: header, Detail: wire.MoreThanOnce}}}
}

// unsupported is the answer to a body type that the route does not accept.
func unsupported(p *shape.Plan, json, codecs []string) *Problem {
	var types []string
	a := p.Accepts
	if a.JSON {
		types = append(append(types, json...), codecs...)
	}
	if a.Form {
		types = append(types, "application/x-www-form-urlencoded", "multipart/form-data")
	}
	if a.XML {
		types = append(types, "application/xml", "text/xml")
	}
	if a.Text {
		types = append(types, "text/plain")
	}
	return &Problem{Status: http.StatusUnsupportedMediaType, Type: "unsupported-media-type",
		Detail: "send " + strings.Join(types, " or ")}
}

// setReadDeadline limits the time for the rest of the body, by a read deadline on the connection.
// Even if the route does not read the body, net/http reads the rest, and sends no answer until
// then. The result is nil if there is no body, or if the connection has no read deadlines.
func (l Limits) setReadDeadline(w http.ResponseWriter, r *http.Request) deadliner {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	conn := deadlineOf(w)
	if conn == nil {
		return nil
	}
	until := time.Now().Add(l.Read)
	if d, ok := r.Context().Deadline(); ok && d.Before(until) {
		until = d
	}
	if conn.SetReadDeadline(until) != nil {
		return nil
	}
	return conn
}

// read reads the whole body into s.Body, within the limits of size and time.
func (c *core) read(s *wire.Scratch, w http.ResponseWriter, r *http.Request) error {
	conn := c.limits.setReadDeadline(w, r)
	if r.ContentLength > c.limits.Body {
		return errTooBig
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	s.Reserve(r.ContentLength + 1)
	for {
		if len(s.Body) == cap(s.Body) {
			s.Grow()
		}
		room := s.Body[len(s.Body):cap(s.Body)]
		if left := c.limits.Body - int64(len(s.Body)); left < int64(len(room)) {
			room = room[:left+1] // one more, to detect a larger body
		}
		n, err := r.Body.Read(room)
		s.Body = s.Body[:len(s.Body)+n]
		switch {
		case int64(len(s.Body)) > c.limits.Body:
			return errTooBig
		case err == io.EOF:
			if conn != nil {
				// The server itself continues to read, to detect a client that leaves. That read
				// must not time out.
				_ = conn.SetReadDeadline(time.Time{})
			}
			return nil
		case err != nil:
			return readError(r, err)
		}
	}
}

func readError(r *http.Request, err error) error {
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return errTooBig
	}
	ended := r.Context().Err()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errCut // the server has cancelled the context because of err
	case errors.Is(err, os.ErrDeadlineExceeded) && ended != context.DeadlineExceeded:
		return errTooSlow // here, too, the server has cancelled the context because of err
	case ended != nil:
		return ended
	}
	return errCut
}

type deadliner interface{ SetReadDeadline(time.Time) error }

// deadlineOf finds the writer that can set a read deadline, as http.ResponseController does. The
// latter's error for other writers would cost an allocation.
func deadlineOf(w http.ResponseWriter) deadliner {
	for {
		switch t := w.(type) {
		case deadliner:
			return t
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil
		}
	}
}
