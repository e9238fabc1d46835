package main

import (
	"bufio"
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
)

// Limits of a request. The experiment's server has none on time.
const (
	maxHead   = 4 << 10 // bytes of request line and fields; also the size of the read buffer
	maxFields = 64
	maxBody   = 1 << 20
)

// fault is why a request is refused. The connection is closed after it.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }

var (
	errLine      = &fault{http.StatusBadRequest, "malformed request line"}
	errTarget    = &fault{http.StatusBadRequest, "malformed request target: want a path"}
	errVersion   = &fault{http.StatusHTTPVersionNotSupported, "unsupported protocol version"}
	errField     = &fault{http.StatusBadRequest, "malformed header field"}
	errHost      = &fault{http.StatusBadRequest, "want one valid Host field"}
	errLength    = &fault{http.StatusBadRequest, "malformed or repeated Content-Length"}
	errCoding    = &fault{http.StatusNotImplemented, "transfer codings are not supported"}
	errExpect    = &fault{http.StatusExpectationFailed, "expectations are not supported"}
	errBody      = &fault{http.StatusRequestEntityTooLarge, "body too large"}
	errHeadLarge = &fault{http.StatusRequestHeaderFieldsTooLarge, "header too large"}
)

// request is a request as bytes. The parsed values point into raw.
type request struct {
	raw            []byte
	method, target []byte
	fields         []field
	frame          framing
	bytesAPI
	std *http.Request // with the API of strings and maps
}

// parse reads one head from the buffer in a single pass.
func (q *request) parse(br *bufio.Reader) error {
	head, err := peekHead(br)
	if err != nil {
		return err
	}
	q.raw = append(q.raw[:0], head...)
	if _, err := br.Discard(len(head)); err != nil {
		return err
	}
	return q.parseHead()
}

var headEnd = []byte("\r\n\r\n")

// peekHead waits for a whole head, its empty line included.
func peekHead(br *bufio.Reader) ([]byte, error) {
	for want := 1; ; {
		if _, err := br.Peek(want); err != nil {
			return nil, err
		}
		b, _ := br.Peek(br.Buffered())
		if i := bytes.Index(b, headEnd); i >= 0 {
			return b[:i+len(headEnd)], nil
		}
		if bareNewline(b) { // no head will ever end
			return nil, errField
		}
		if len(b) >= maxHead {
			return nil, errHeadLarge
		}
		want = len(b) + 1
	}
}

func bareNewline(b []byte) bool {
	for i, c := range b {
		if c == '\n' && (i == 0 || b[i-1] != '\r') {
			return true
		}
	}
	return false
}

// parseHead reads raw, which ends with an empty line.
func (q *request) parseHead() error {
	q.fields, q.frame = q.fields[:0], framing{}
	line, rest, _ := cutLine(q.raw)
	if err := q.parseLine(line); err != nil {
		return err
	}
	for {
		var ok bool
		if line, rest, ok = cutLine(rest); !ok {
			return errField
		}
		if len(line) == 0 {
			return q.frame.check()
		}
		name := line[:tokenLen(line)]
		if len(name) == 0 || len(name) == len(line) || line[len(name)] != ':' {
			return errField
		}
		value := trim(line[len(name)+1:])
		if !validValue(value) {
			return errField
		}
		if len(q.fields) == maxFields {
			return errHeadLarge
		}
		canonical(name)
		q.fields = append(q.fields, field{name, value})
		observe(&q.frame, name, value)
	}
}

// cutLine cuts after the first line feed; a carriage return must come before it.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 || b[i-1] != '\r' {
		return nil, nil, false
	}
	return b[:i-1], b[i+1:], true
}

// parseLine reads the request line.
func (q *request) parseLine(line []byte) error {
	method, rest, ok := bytes.Cut(line, []byte{' '})
	n := len(rest) - len(" HTTP/1.1")
	if !ok || len(method) == 0 || tokenLen(method) != len(method) || n < 1 || rest[n] != ' ' {
		return errLine
	}
	q.method, q.target = method, rest[:n]
	if err := q.frame.version(string(rest[n+1:])); err != nil {
		return err
	}
	if !validTarget(q.target) {
		return errTarget
	}
	return nil
}

// parseStandard reads a head with the parser of net/http, and adds what its server
// does after parsing. The reader must be bounded.
func (q *request) parseStandard(br *bufio.Reader) (err error) {
	q.frame = framing{}
	if q.std, err = http.ReadRequest(br); err != nil {
		return err
	}
	if err := q.frame.version(q.std.Proto); err != nil {
		return err
	}
	if !validTarget(q.std.RequestURI) {
		return errTarget
	}
	n := 0
	for name, values := range q.std.Header {
		for _, v := range values {
			if n++; tokenLen(name) != len(name) || !validValue(v) {
				return errField
			}
		}
	}
	if q.std.Host != "" { // it is no longer in the map
		n++
		observe(&q.frame, "Host", q.std.Host)
	}
	for _, name := range observed { // one by one, as with any map
		for _, v := range q.std.Header[name] {
			observe(&q.frame, name, v)
		}
	}
	switch {
	case n > maxFields:
		return errHeadLarge
	case q.std.TransferEncoding != nil:
		return errCoding
	}
	return q.frame.check()
}

// observed are the fields that observe handles.
var observed = []string{"Content-Length", "Connection", "Expect"}

// toStrings converts the parsed request for the API of strings.
func (q *request) toStrings() {
	header := q.std.Header
	all := string(q.raw)
	sub := func(b []byte) string {
		from := cap(q.raw) - cap(b) // b begins where its capacity says
		return all[from : from+len(b)]
	}
	q.std.Method, q.std.RequestURI, q.std.Proto = sub(q.method), sub(q.target), "HTTP/1."+string('0'+q.frame.minor)
	if header == nil {
		header = make(http.Header, len(q.fields))
	}
	clear(header)
	values := make([]string, len(q.fields))
	for i, f := range q.fields {
		name := textproto.CanonicalMIMEHeaderKey(sub(f.name))
		if have, ok := header[name]; ok {
			header[name] = append(have, sub(f.value))
			continue
		}
		values[i] = sub(f.value)
		header[name] = values[i : i+1 : i+1]
	}
	q.std.Header = header
}

// finish fills in what the own parser leaves for the API of strings.
func (q *request) finish(reuse *url.URL) error {
	header := q.std.Header
	u, err := url.ParseRequestURI(q.std.RequestURI)
	if err != nil {
		return errTarget
	}
	if reuse != nil {
		*reuse = *u
		u = reuse
	}
	q.std.URL, q.std.Host = u, header.Get("Host")
	q.std.ProtoMajor, q.std.ProtoMinor, q.std.ContentLength = 1, int(q.frame.minor), q.frame.length
	q.std.Close, q.std.Body = q.frame.close, http.NoBody
	delete(header, "Host")
	return nil
}
