package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The work: every server answers the same request in the same way. Two servers also answer others.
const (
	prefix   = "/api/v1/patients/"
	echoed   = "X-Request-Id"
	jsonType = "application/json"
	patient  = `","name":"Patient of the experiment","born":"1970-01-01","active":true}`
	before   = `{"id":"`
	longest  = 64 // bytes of an id

	wire = "GET " + prefix + "P000042?fields=name HTTP/1.1\r\n" +
		"Host: localhost:8080\r\nUser-Agent: spillway-ladder/1\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\n" +
		"Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n" + echoed + ": 4bf92f3577b34da6\r\n\r\n"
	wireHost = "GET " + prefix + "P000042 HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"
	wirePost = "POST " + prefix + "P000042 HTTP/1.1\r\n" +
		"Host: localhost:8080\r\nUser-Agent: spillway-ladder/1\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\n" +
		"Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n" + echoed + ": 4bf92f3577b34da6\r\n" +
		"Content-Type: " + jsonType + "\r\nContent-Length: 67\r\n\r\n" + `{"name":"Patient of the experiment","born":"1970-01-01","id":"P42"}`
	wireBody = before + "P000042" + patient
)

// answerStrings is the handler for the API of strings and maps, net/http's.
func answerStrings(w http.ResponseWriter, r *http.Request) {
	id, found := strings.CutPrefix(r.URL.Path, prefix)
	if !found || len(id) > longest || r.Method != http.MethodGet {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set(echoed, r.Header.Get(echoed))
	_, _ = io.WriteString(w, before)
	_, _ = io.WriteString(w, id)
	_, _ = io.WriteString(w, patient)
}

// answerAny reads the body of a request with any method, and answers.
func answerAny(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.Method = http.MethodGet
	answerStrings(w, r)
}

// answerBytes is the same for the byte API.
func answerBytes(q *request, p *response) {
	id, found := bytes.CutPrefix(q.path, []byte(prefix))
	if !found || len(id) > longest || string(q.method) != http.MethodGet {
		p.status = http.StatusNotFound
		return
	}
	p.lines = append(p.lines, keepField(&p.store, "Content-Type", jsonType), keepField(&p.store, []byte(echoed), get(q.fields, echoed)))
	_, _ = p.WriteString(before)
	_, _ = p.Write(id)
	_, _ = p.WriteString(patient)
}

// response is an answer being written; with the API of strings it is the
// http.ResponseWriter.
type response struct {
	conn   *conn
	status int
	header http.Header // the API of strings
	lines  []field     // the byte API
	store  []byte
	body   []byte
	out    []byte // with OneBuffer: the whole answer
}

func (p *response) reset(k *conn) {
	p.conn, p.status, p.lines, p.store, p.body, p.out = k, http.StatusOK, p.lines[:0], p.store[:0], p.body[:0], p.out[:0]
	clear(p.header)
}

func (p *response) Header() http.Header               { return p.header }
func (p *response) WriteHeader(status int)            { p.status = status }
func (p *response) Write(b []byte) (int, error)       { return write(p, b) }
func (p *response) WriteString(s string) (int, error) { return write(p, s) }

func write[T text](p *response, b T) (int, error) {
	if p.conn.beat.hijacked() {
		return 0, http.ErrHijacked
	}
	body := &p.body
	if l := p.conn.late; l != nil {
		l.begin(p)
		body = l.body
	}
	*body = append(*body, b...)
	return len(b), nil
}

// answer sends what the handler wrote.
func (k *conn) answer(x *exchange) error {
	if k.late != nil {
		return k.late.finish(x)
	}
	x.complete(x.header, x.body)
	if s := x.at.Unix(); s != k.second {
		k.second, k.date = s, x.at.UTC().AppendFormat(k.date[:0], http.TimeFormat)
	}
	out := appendField(statusLine(slices.Grow(x.out, 512), x.status), "Date", k.date)
	for _, f := range x.lines {
		out = appendField(out, f.name, f.value)
	}
	for name, values := range x.header {
		for _, v := range values {
			out = appendField(out, name, v)
		}
	}
	x.out = append(endHead(out, len(x.body), x.last), x.body...)
	_, _ = k.bw.Write(x.out) // the next one keeps the error
	return k.bw.Flush()
}

// layers are the writers of an answer in net/http: a buffer that finds the length of
// a short body, and the connection's buffer, which gets the head piece by piece.
type layers struct {
	header  http.Header // as it was when the body began
	body    *[]byte
	bw      *bufio.Writer
	scratch [128]byte
}

// bodyBuffers have room for the bodies of the experiment.
var bodyBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

func (l *layers) begin(p *response) {
	if l.body == nil {
		l.body = bodyBuffers.Get().(*[]byte)
		l.header = p.header.Clone() // later changes by the handler have no effect
	}
}

func (l *layers) finish(x *exchange) error {
	l.begin(&x.response)
	body := *l.body
	x.complete(l.header, body)
	_, _ = l.bw.Write(statusLine(l.scratch[:0], x.status)) // the last writer keeps the error
	if l.header != nil {
		_ = l.header.Write(l.bw)
	}
	for _, f := range x.lines {
		_, _ = l.bw.Write(appendField(l.scratch[:0], f.name, f.value))
	}
	now := time.Now().UTC().AppendFormat(append(l.scratch[:0], "Date: "...), http.TimeFormat)
	_, _ = l.bw.Write(append(now, "\r\n"...))
	_, _ = l.bw.Write(endHead(l.scratch[:0], len(body), x.last))
	_, _ = l.bw.Write(body)
	*l.body = body[:0]
	bodyBuffers.Put(l.body)
	l.header, l.body = nil, nil
	return l.bw.Flush()
}

// complete takes away the fields that are the server's own, and finds out the type of the
// body if the handler did not say it. The handler for the byte API leaves them alone.
func (p *response) complete(h http.Header, body []byte) {
	if h != nil {
		for _, name := range []string{"Content-Length", "Transfer-Encoding", "Connection", "Date"} {
			delete(h, name)
		}
	}
	if len(body) > 0 && get(p.lines, "Content-Type") == nil && h.Get("Content-Type") == "" {
		p.lines = append(p.lines, keepField(&p.store, "Content-Type", http.DetectContentType(body)))
	}
}

func appendField[N, V text](b []byte, name N, value V) []byte {
	return append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
}

func statusLine(b []byte, status int) []byte {
	b = append(strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10), ' ')
	return append(append(b, http.StatusText(status)...), "\r\n"...)
}

func endHead(b []byte, length int, last bool) []byte {
	b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(length), 10), "\r\n"...)
	if last {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}
