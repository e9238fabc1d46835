package main

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Limits of a request. There is none on time.
const (
	maxHead   = 4 << 10 // bytes of request line and fields for the own parser, twice that for net/http's
	maxFields = 64
)

var errMalformed, errDone = errors.New("malformed, too large, or not understood"), errors.New("the connection has ended")

// request is a request in the form that the parser and the handler want.
type request struct {
	raw   []byte        // of the own parser: the head, in the buffer of the connection
	found head          // there
	std   *http.Request // of net/http's parser, or the API of strings
	hosts int           // fields of that name
	bad   bool
	last  bool // of the connection

	// The byte API has memory of its own, so that a handler may change any of it.
	head
	host, path, query []byte
	store             []byte
}

type head struct {
	method, target []byte
	fields         []field
}

// field is a field of a request or of an answer, with a canonical name.
type field struct{ name, value []byte }

type text interface{ ~string | ~[]byte }

// observe reads a field that says where the request ends, which is at its head.
func observe[T text](q *request, name, value T) {
	switch string(name) {
	case "Host":
		q.hosts++
		q.bad = q.bad || !all(value, &hosts)
	case "Connection":
		q.last = q.last || !strings.EqualFold(string(value), "keep-alive")
	case "Content-Length":
		q.bad = q.bad || string(value) != "0"
	case "Transfer-Encoding", "Expect":
		q.bad = true
	}
}

// parse reads one head from the buffer in a single pass.
func (q *request) parse(br *bufio.Reader) error {
	for want := 1; ; want = br.Buffered() + 1 {
		if _, err := br.Peek(want); err != nil { // or the buffer is full
			return err
		}
		b, _ := br.Peek(br.Buffered())
		if end := bytes.Index(b, []byte("\r\n\r\n")) + 4; end >= 4 {
			q.raw = b[:end]
			_, _ = br.Discard(end) // it remains as it is until the next request is read
			return q.parseHead()
		}
	}
}

func (q *request) parseHead() error {
	fields := q.found.fields[:0]
	line, rest, _ := bytes.Cut(q.raw, []byte("\r\n"))
	method, line, _ := bytes.Cut(line, []byte{' '})
	target, ours := bytes.CutSuffix(line, []byte(" HTTP/1.1"))
	if !ours || len(method) == 0 || !all(method, &tokens) || !isPath(target) {
		return errMalformed
	}
	for {
		if line, rest, _ = bytes.Cut(rest, []byte("\r\n")); len(line) == 0 {
			q.found = head{method, target, fields}
			return nil
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok || len(name) == 0 || !all(name, &tokens) || !all(value, &values) || len(fields) == maxFields {
			return errMalformed
		}
		canonical(name)
		value = bytes.TrimSpace(value)
		fields = append(fields, field{name, value})
		observe(q, name, value)
	}
}

// parseStandard reads a head with the parser of net/http, and adds what its server
// does after parsing. The reader must be bounded.
func (q *request) parseStandard(br *bufio.Reader) error {
	r, err := http.ReadRequest(br)
	if err != nil {
		return err
	}
	n := 0
	for name, vs := range r.Header {
		for _, v := range vs {
			n++
			q.bad = q.bad || !all(name, &tokens) || !all(v, &values)
			observe(q, name, v)
		}
	}
	if r.Host != "" { // it is no longer in the map
		observe(q, "Host", r.Host)
	}
	q.bad = q.bad || n >= maxFields || r.Proto != "HTTP/1.1" || !isPath(r.RequestURI) || r.TransferEncoding != nil
	r.Body, q.std = http.NoBody, r
	return nil
}

// toStandard makes what the own parser found a request of net/http.
func (q *request) toStandard() error {
	if q.std == nil {
		q.std = &http.Request{Header: make(http.Header, len(q.found.fields))}
	}
	r, whole := q.std, string(q.raw)
	sub := func(b []byte) string {
		from := min(cap(q.raw)-cap(b), len(whole)) // b begins where its capacity says, nil anywhere
		return whole[from : from+len(b)]
	}
	clear(r.Header)
	values := make([]string, len(q.found.fields))
	for i, f := range q.found.fields {
		name := sub(f.name)
		have := r.Header[name]
		if have == nil {
			have = values[i : i : i+1]
		}
		r.Header[name] = append(have, sub(f.value))
	}
	u, err := url.ParseRequestURI(sub(q.found.target))
	if err != nil {
		return err
	}
	r.Method, r.RequestURI, r.URL, r.Host = sub(q.found.method), sub(q.found.target), u, r.Header.Get("Host")
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.Close, r.Body = "HTTP/1.1", 1, 1, q.last, http.NoBody
	delete(r.Header, "Host")
	return nil
}

// toBytes makes what either parser found a request of the byte API, with its path decoded.
func (q *request) toBytes(parsed bool) error {
	q.store, q.fields = slices.Grow(q.store[:0], 512), slices.Grow(q.fields[:0], 16)
	if parsed {
		q.method, q.target = keep(&q.store, q.found.method), keep(&q.store, q.found.target)
		for _, f := range q.found.fields {
			q.fields = append(q.fields, keepField(&q.store, f.name, f.value))
		}
	} else {
		q.method, q.target = keep(&q.store, q.std.Method), keep(&q.store, q.std.RequestURI)
		q.fields = append(q.fields, keepField(&q.store, "Host", q.std.Host)) // it is no longer in the map
		for name, values := range q.std.Header {
			for _, v := range values {
				q.fields = append(q.fields, keepField(&q.store, name, v))
			}
		}
	}
	raw, query, _ := bytes.Cut(q.target, []byte{'?'})
	q.query, q.host, q.path = query, get(q.fields, "Host"), append(q.path[:0], raw...)
	if bytes.IndexByte(raw, '%') >= 0 {
		plain, err := url.PathUnescape(string(raw))
		q.path = append(q.path[:0], plain...)
		return err
	}
	return nil
}

// get returns the first field of a canonical name; nil if there is none.
func get(fields []field, name string) []byte {
	for _, f := range fields {
		if string(f.name) == name {
			return f.value
		}
	}
	return nil
}

// keep appends v to a store and returns it there. What is kept remains valid when the
// store grows, until it is reset and reused.
func keep[T text](store *[]byte, v T) []byte {
	from := len(*store)
	*store = append(*store, v...)
	return (*store)[from:len(*store):len(*store)] // appending to it reallocates
}

func keepField[T text](store *[]byte, name, value T) field {
	return field{keep(store, name), keep(store, value)}
}

// set is a set of bytes.
type set [256]bool

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// The bytes of RFC 9110's tokens, of its authorities, of values and of targets.
var (
	tokens  = setOf(0, 0, alphanumeric+"!#$%&'*+-.^_`|~")
	hosts   = setOf(0, 0, alphanumeric+"-._~!$&'()*+,;=:[]%")
	values  = setOf(' ', 0x7f, "\t")
	targets = setOf('!', 0x7f, "")
)

// setOf is the bytes from first up to last, without it, and others.
func setOf(first, last int, others string) (s set) {
	for c := range s {
		s[c] = c >= first && c < last || strings.IndexByte(others, byte(c)) >= 0
	}
	return s
}

// all reports whether the set has every byte.
func all[T text](b T, of *set) bool {
	for i := range len(b) {
		if !of[b[i]] {
			return false
		}
	}
	return true
}

// isPath accepts a path only: the server is no proxy.
func isPath[T text](b T) bool { return len(b) > 0 && b[0] == '/' && all(b, &targets) }

// canonical gives a field's name the case that http.Header has it in.
func canonical(name []byte) {
	upper := true
	for i, c := range name {
		switch {
		case upper && c >= 'a' && c <= 'z':
			name[i] = c - ('a' - 'A')
		case !upper && c >= 'A' && c <= 'Z':
			name[i] = c + ('a' - 'A')
		}
		upper = c == '-'
	}
}
