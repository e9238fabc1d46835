package main

import (
	"bytes"
	"path"
	"slices"
)

// bytesAPI is a request in the byte API. It owns its memory, so a handler may change
// any of it, and the next request reuses the memory.
type bytesAPI struct {
	store                store
	verb, full           []byte // the method, and the target as received
	rawPath, query, path []byte
	host, key            []byte
	kept                 []field
}

// field is a field of a request or of an answer.
type field struct{ name, value []byte }

// store is memory for many small values. Stored values remain valid when it grows,
// until it is reset and reused.
type store []byte

func keep[T text](s *store, v T) []byte {
	from := len(*s)
	*s = append(*s, v...)
	return s.since(from)
}

// since returns the bytes from that position on; appending to them reallocates.
func (s store) since(from int) []byte { return s[from:len(s):len(s)] }

// lookUp returns the field of a canonical name, nil if there is none.
func lookUp(all []field, name []byte) *field {
	for i := range all {
		if bytes.Equal(all[i].name, name) {
			return &all[i]
		}
	}
	return nil
}

// get returns the first field of that name, in any case; nil if there is none.
func (a *bytesAPI) get(name string) []byte {
	a.key = append(a.key[:0], name...)
	canonical(a.key)
	if f := lookUp(a.kept, a.key); f != nil {
		return f.value
	}
	return nil
}

// toBytes fills the byte API from the own parser or net/http's.
func (q *request) toBytes(parsed bool) error {
	if parsed {
		q.start(len(q.raw)+2*len(q.target), len(q.fields))
		q.verb, q.full = keep(&q.store, q.method), keep(&q.store, q.target)
		for _, f := range q.fields {
			q.kept = append(q.kept, field{keep(&q.store, f.name), keep(&q.store, f.value)})
		}
		return q.locate(q.get("Host"))
	}
	size, n := len(q.std.Method)+3*len(q.std.RequestURI)+len("Host")+2*len(q.std.Host), 1
	for name, values := range q.std.Header {
		for _, v := range values {
			size += len(name) + len(v)
			n++
		}
	}
	q.start(size, n)
	q.verb, q.full = keep(&q.store, q.std.Method), keep(&q.store, q.std.RequestURI)
	for name, values := range q.std.Header {
		for _, v := range values {
			q.kept = append(q.kept, field{keep(&q.store, name), keep(&q.store, v)})
		}
	}
	if q.std.Host != "" { // net/http removes it from the header
		q.kept = append(q.kept, field{keep(&q.store, "Host"), keep(&q.store, q.std.Host)})
	}
	return q.locate(q.get("Host"))
}

// start makes room for that many bytes and fields at once.
func (a *bytesAPI) start(size, fields int) {
	a.store, a.kept = slices.Grow(a.store[:0], size), slices.Grow(a.kept[:0], fields)
}

// locate finds host, path and query: the host decoded and in lower case, the path
// decoded and without empty and dotted segments.
func (a *bytesAPI) locate(host []byte) (err error) {
	raw, query, _ := bytes.Cut(a.full, []byte{'?'})
	a.rawPath, a.query = keep(&a.store, raw), keep(&a.store, query)
	if a.host, err = a.decoded(host, errHost); err != nil {
		return err
	}
	if !hostAndPort(a.host) {
		return errHost
	}
	for i, c := range a.host {
		if c >= 'A' && c <= 'Z' {
			a.host[i] = c + 'a' - 'A'
		}
	}
	if a.path, err = a.decoded(a.rawPath, errTarget); err != nil {
		return err
	}
	if bytes.Contains(a.path, []byte("//")) || bytes.Contains(a.path, []byte("/.")) {
		a.path = append(a.path[:0], path.Clean(string(a.path))...)
	}
	return nil
}

// decoded keeps what raw is without escapes.
func (a *bytesAPI) decoded(raw []byte, wrong *fault) ([]byte, error) {
	from := len(a.store)
	all, ok := unescape(a.store, raw)
	if !ok {
		return nil, wrong
	}
	a.store = all
	return a.store.since(from), nil
}

// hostAndPort accepts a name or an address, in brackets if it has colons, and a port
// of digits after a colon. Escapes must not produce characters that a host cannot
// have.
func hostAndPort(b []byte) bool {
	port := bytes.LastIndexByte(b, ':')
	switch {
	case len(b) > 0 && b[0] == '[':
		end := bytes.LastIndexByte(b, ']')
		if end < 0 || end+1 < len(b) && b[end+1] != ':' {
			return false
		}
		port = max(port, end) // a colon within the brackets begins no port
	case bytes.IndexByte(b, '[') >= 0 || bytes.IndexByte(b, ']') >= 0:
		return false
	case port >= 0 && bytes.IndexByte(b[:port], ':') >= 0:
		return false
	}
	for i, c := range b {
		if c < 0x80 && !hosts[c] || port >= 0 && i > port && !digit(c) {
			return false
		}
	}
	return true
}

// unescape appends without escapes.
func unescape(to, raw []byte) ([]byte, bool) {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			if i+2 >= len(raw) {
				return to, false
			}
			high, low := unhex(raw[i+1]), unhex(raw[i+2])
			if high > 15 || low > 15 {
				return to, false
			}
			c = high<<4 | low
			i += 2
		}
		to = append(to, c)
	}
	return to, true
}

func unhex(c byte) byte {
	switch {
	case digit(c):
		return c - '0'
	case c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		return c&^0x20 - 'A' + 10
	}
	return 16
}
