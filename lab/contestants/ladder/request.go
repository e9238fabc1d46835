package main

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Limits of a request. There is none on time.
const (
	maxHead   = 4 << 10 // bytes of request line and fields for the own parser, twice that for net/http's
	maxFields = 64
)

var errMalformed = errors.New("malformed, too large, or nothing that this server understands")

// request is a request in the form that the parser and the handler want.
type request struct {
	raw               []byte // what the next three point into; a handler may change it
	method, target    []byte
	fields            []field
	host, path, query []byte        // of the byte API
	std               *http.Request // of net/http's parser, or the API of strings
	url               *url.URL      // with State and the API of strings
	framing
}

// field is a field of a request or of an answer, with a canonical name.
type field struct{ name, value []byte }

// framing is what the fields say about where the request ends: at its head.
type framing struct {
	hosts int
	bad   bool
	last  bool // of the connection
}

type text interface{ ~string | ~[]byte }

// observe reads one field.
func observe[T text](f *framing, name, value T) {
	switch string(name) {
	case "Host":
		f.hosts++
		f.bad = f.bad || !all(value, &hosts)
	case "Connection":
		f.last = f.last || !strings.EqualFold(string(value), "keep-alive")
	case "Content-Length":
		f.bad = f.bad || string(value) != "0"
	case "Transfer-Encoding", "Expect":
		f.bad = true
	}
}

func (f *framing) check() error {
	if f.bad || f.hosts != 1 {
		return errMalformed
	}
	return nil
}

// parse reads one head from the buffer in a single pass.
func (q *request) parse(br *bufio.Reader) error {
	for want, end := 1, 0; ; want = br.Buffered() + 1 {
		if _, err := br.Peek(want); err != nil { // or the buffer is full
			return err
		}
		b, _ := br.Peek(br.Buffered())
		if end = bytes.Index(b, []byte("\r\n\r\n")) + 4; end >= 4 {
			q.raw = append(q.raw[:0], b[:end]...)
			_, _ = br.Discard(end)
			return q.parseHead()
		}
	}
}

// parseHead reads raw, which ends with an empty line.
func (q *request) parseHead() error {
	q.fields, q.framing = q.fields[:0], framing{}
	line, rest, _ := bytes.Cut(q.raw, []byte("\r\n"))
	method, line, _ := bytes.Cut(line, []byte{' '})
	target, ours := bytes.CutSuffix(line, []byte(" HTTP/1.1"))
	if !ours || len(method) == 0 || !all(method, &tokens) || !isPath(target) {
		return errMalformed
	}
	q.method, q.target = method, target
	for {
		if line, rest, _ = bytes.Cut(rest, []byte("\r\n")); len(line) == 0 {
			return q.check()
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok || len(name) == 0 || !all(name, &tokens) || !all(value, &values) || len(q.fields) == maxFields {
			return errMalformed
		}
		canonical(name)
		value = bytes.TrimSpace(value)
		q.fields = append(q.fields, field{name, value})
		observe(&q.framing, name, value)
	}
}

// parseStandard reads a head with the parser of net/http, and adds what its server
// does after parsing. The reader must be bounded.
func (q *request) parseStandard(br *bufio.Reader) (err error) {
	q.framing = framing{}
	if q.std, err = http.ReadRequest(br); err != nil {
		return err
	}
	r, n := q.std, 0
	for name, vs := range r.Header {
		for _, v := range vs {
			n++
			q.bad = q.bad || !all(name, &tokens) || !all(v, &values)
		}
	}
	if r.Host != "" { // it is no longer in the map
		observe(&q.framing, "Host", r.Host)
	}
	for _, name := range []string{"Content-Length", "Connection", "Expect"} { // one by one, as with any map
		for _, v := range r.Header[name] {
			observe(&q.framing, name, v)
		}
	}
	q.bad = q.bad || n >= maxFields || r.Proto != "HTTP/1.1" || !isPath(r.RequestURI) || r.TransferEncoding != nil
	r.Body = http.NoBody
	return q.check()
}

// fromStandard makes what net/http parsed a request of the byte API.
func (q *request) fromStandard() {
	q.raw, q.fields = slices.Grow(q.raw[:0], 512), slices.Grow(q.fields[:0], 16)
	q.method, q.target = keep(&q.raw, q.std.Method), keep(&q.raw, q.std.RequestURI)
	for name, values := range q.std.Header {
		for _, v := range values {
			q.fields = append(q.fields, field{keep(&q.raw, name), keep(&q.raw, v)})
		}
	}
	q.fields = append(q.fields, field{keep(&q.raw, "Host"), keep(&q.raw, q.std.Host)})
}

// toStandard makes what the own parser found a request of net/http.
func (q *request) toStandard() error {
	r, whole := q.std, string(q.raw)
	sub := func(b []byte) string {
		from := cap(q.raw) - cap(b) // b begins where its capacity says
		return whole[from : from+len(b)]
	}
	if r.Header == nil {
		r.Header = make(http.Header, len(q.fields))
	}
	clear(r.Header)
	values := make([]string, len(q.fields))
	for i, f := range q.fields {
		name := textproto.CanonicalMIMEHeaderKey(sub(f.name))
		have := r.Header[name]
		if have == nil {
			have = values[i : i : i+1]
		}
		r.Header[name] = append(have, sub(f.value))
	}
	u, err := url.ParseRequestURI(sub(q.target))
	if err != nil {
		return err
	}
	if q.url != nil {
		*q.url = *u
		u = q.url
	}
	r.Method, r.RequestURI, r.URL, r.Host = sub(q.method), sub(q.target), u, r.Header.Get("Host")
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.Close, r.Body = "HTTP/1.1", 1, 1, q.last, http.NoBody
	delete(r.Header, "Host")
	return nil
}

// locate finds host, path and query: the host decoded and in lower case, the path
// decoded and without empty and dotted segments.
func (q *request) locate() (err error) {
	raw, query, _ := bytes.Cut(q.target, []byte{'?'})
	q.query = query
	if q.host, err = unescape(q.host[:0], get(q.fields, "Host")); err != nil || !all(q.host, &hosts) {
		return errMalformed
	}
	for i, c := range q.host {
		if c >= 'A' && c <= 'Z' {
			q.host[i] = c + 'a' - 'A'
		}
	}
	q.path, err = unescape(q.path[:0], raw)
	if bytes.Contains(q.path, []byte("//")) || bytes.Contains(q.path, []byte("/.")) {
		q.path = append(q.path[:0], path.Clean(string(q.path))...)
	}
	return err
}

func unescape(to, raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '%') < 0 {
		return append(to, raw...), nil
	}
	plain, err := url.PathUnescape(string(raw))
	return append(to, plain...), err
}
