package route

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/route/internal/encode"
	"github.com/spillway-go/spillway/route/internal/shape"
)

// Empty is a request without fields, or a response without content.
type Empty struct{}

// Response is a response of type T with a status and headers.
//
// A response of any type that is an io.Closer returns a resource, such as pooled memory, by Close.
// Close is called once, after the response has been written or could not be; its error is dropped. A
// handler that returns an error keeps its resource: Close is not called.
type Response[T any] struct {
	Code   int         // 0 means the route's status
	Header http.Header // replaces fields that middleware has set
	Body   T
}

func (r *Response[T]) parts() (code int, header http.Header, body any) {
	return r.Code, r.Header, &r.Body
}

// wrapper is a Response of any type.
type wrapper interface {
	parts() (code int, header http.Header, body any)
}

// File is a response of bytes. Clients may request ranges, and may make the request conditional on
// a change (http.ServeContent). Content is closed if it is an io.Closer.
type File struct {
	Name        string // file name in a browser's download; empty means that the browser shows the file
	ContentType string // empty means derived from the name, or from the content
	Modified    time.Time
	ETag        string // quoted
	Content     io.ReadSeeker
}

// answer describes how a response type is answered.
type answer struct {
	shape    *shape.Shape // of the encoded value; nil for nothing, a file or a stream
	writer   *encode.Writer
	nulls    bool // a nil slice in the response may be written as null
	status   int
	escapes  bool // user code gets a pointer to the response
	streams  bool // the response is a File or Stream
	wraps    bool // the response is a Response
	special  bool // the response is a File, Stream or Empty
	indirect bool // the response type is a pointer or an interface
	dynamic  bool // the encoded value is an interface

	closes bool // the response is an io.Closer
}

func answerOf(t reflect.Type) (*answer, error) {
	a := &answer{status: http.StatusOK}
	inner := t
	if reflect.PointerTo(t).Implements(reflect.TypeFor[wrapper]()) {
		a.wraps = true
		body, _ := t.FieldByName("Body")
		inner = body.Type
	}
	a.indirect = t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface
	a.dynamic = inner.Kind() == reflect.Interface
	closer := reflect.TypeFor[io.Closer]()
	a.escapes = !t.Implements(closer) && reflect.PointerTo(t).Implements(closer)
	a.closes = t.Implements(closer) || a.escapes || t.Kind() == reflect.Interface
	if t.Kind() == reflect.Pointer && t.Implements(reflect.TypeFor[wrapper]()) {
		return nil, fmt.Errorf("response type %s: return %s itself", t, t.Elem())
	}
	if inner.Kind() == reflect.Pointer && special(reflect.Zero(inner.Elem()).Interface()) != nil {
		return nil, fmt.Errorf("response type %s: return %s itself", t, inner.Elem())
	}
	switch inner {
	case reflect.TypeFor[Empty](), reflect.TypeFor[struct{}]():
		a.status, a.special = http.StatusNoContent, true
		return a, nil
	case reflect.TypeFor[File](), reflect.TypeFor[Stream]():
		a.special, a.streams = true, true
		return a, nil
	}
	switch inner.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return nil, fmt.Errorf("response type %s cannot be encoded", inner)
	}
	// Where encoding/json writes a type whose parts the document describes, a nil slice in it may be null.
	s, hasParts := shape.OfResponse(inner, ownTypes)
	writer, library := encode.New(inner, isOptional)
	a.shape, a.writer, a.nulls = s, writer, slices.ContainsFunc(library, hasParts)
	a.escapes = a.escapes || a.shape.Escapes
	return a, nil
}

// respond answers with v, a pointer to the response. If respond returns an error, the request can
// still be answered with a problem.
func (c *core) respond(ctx context.Context, out *encode.Output, w http.ResponseWriter, r *http.Request, t *progress, v any) error {
	h := w.Header()
	status := c.status
	var headers http.Header // set last, because a problem must not have these headers
	if c.answer.wraps {
		code, header, body := v.(wrapper).parts()
		v, headers = body, header
		if code != 0 {
			status = code
		}
	}
	if status < 200 || status > 999 { // net/http would panic, or wait for more
		return fmt.Errorf("status %d of a response is none", status)
	}
	if c.answer.dynamic {
		if one := special(reflect.ValueOf(v).Elem().Interface()); one != nil {
			return c.special(ctx, w, r, t, status, headers, one)
		}
	}
	if c.answer.special {
		return c.special(ctx, w, r, t, status, headers, v)
	}
	if bodiless(status) {
		set(h, headers)
		t.write(h)
		t.setStatus(status)
		w.WriteHeader(status)
		return nil
	}
	if err := out.Encode(c.answer.writer, v); err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	set(h, headers)
	if _, chosen := h["Content-Type"]; !chosen {
		h["Content-Type"] = c.content
	}
	t.write(h)
	t.setStatus(status)
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	n, _ := w.Write(out.Bytes()) // a client that left is not an error
	t.addBytes(int64(n))
	return nil
}

// respondAndClose is respond for an io.Closer. It calls Close even if user code panics.
func (c *core) respondAndClose(ctx context.Context, out *encode.Output, w http.ResponseWriter, r *http.Request, t *progress, v any) error {
	value := v
	if c.answer.indirect {
		value = reflect.ValueOf(v).Elem().Interface()
	}
	if held, ok := value.(io.Closer); ok && !isNil(value) {
		defer held.Close()
	}
	return c.respond(ctx, out, w, r, t, v)
}

// jsonContent is shared by all responses, like the value of Produces that replaces it. Appending to
// it copies, and setting replaces it.
var jsonContent = []string{"application/json"}

// bodiless reports whether an answer with the given status has no content.
func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return v == nil || value.Kind() == reflect.Pointer && value.IsNil()
}

// set puts the fields of more into h. Each field replaces the field in h.
func set(h, more http.Header) {
	for name, values := range more {
		h[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
	}
}

// special returns a pointer to a response that is not encoded, or nil for other responses.
func special(v any) any {
	switch v := v.(type) {
	case File:
		return &v
	case Stream:
		return &v
	case Empty:
		return &v
	case *File, *Stream:
		if !isNil(v) {
			return v
		}
	}
	return nil
}

// special answers with a response that is not encoded.
func (c *core) special(ctx context.Context, w http.ResponseWriter, r *http.Request, t *progress, status int, headers http.Header, v any) error {
	switch v := v.(type) {
	case *File:
		return v.serve(w, r, t, status, headers)
	case *Stream:
		return v.serve(ctx, w, r, t, status, headers)
	}
	set(w.Header(), headers)
	t.write(w.Header())
	t.setStatus(status)
	w.WriteHeader(status)
	return nil
}

func (f *File) serve(w http.ResponseWriter, r *http.Request, t *progress, status int, headers http.Header) error {
	if f.Content == nil {
		return fmt.Errorf("a File has no Content")
	}
	if closer, ok := f.Content.(io.Closer); ok {
		defer closer.Close()
	}
	var size int64
	if status != http.StatusOK {
		var err error
		if size, err = f.Content.Seek(0, io.SeekEnd); err == nil {
			_, err = f.Content.Seek(0, io.SeekStart)
		}
		if err != nil {
			return fmt.Errorf("file: %w", err)
		}
	}
	h := w.Header()
	set(h, headers)
	if f.ContentType != "" {
		h.Set("Content-Type", f.ContentType)
	}
	if f.Name != "" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(f.Name)}))
	}
	if f.ETag != "" {
		h.Set("ETag", f.ETag)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	t.write(h)
	w = t.watched(w)
	if status != http.StatusOK {
		// ServeContent chooses among 200, 206, 304 and 416 by itself.
		h.Set("Content-Length", strconv.FormatInt(size, 10))
		w.WriteHeader(status)
		if r.Method != http.MethodHead && !bodiless(status) {
			_, _ = io.Copy(w, f.Content)
		}
		return nil
	}
	http.ServeContent(w, r, f.Name, f.Modified, f.Content)
	return nil
}
