package main

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The work: every server answers the same request in the same way.
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

// answerBytes is the same for the byte API.
func answerBytes(q *request, p *response) {
	id, found := bytes.CutPrefix(q.path, []byte(prefix))
	if !found || len(id) > longest || string(q.method) != http.MethodGet {
		p.status = http.StatusNotFound
		return
	}
	p.set("Content-Type", []byte(jsonType))
	p.set(echoed, get(q.fields, echoed))
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

func (p *response) Header() http.Header { return p.header }

func (p *response) WriteHeader(status int) {
	if p.conn.beat.mine() {
		p.status = status
	}
}

// set adds a field. Line ends in the value become spaces.
func (p *response) set(name string, value []byte) {
	kept := keep(&p.store, value)
	for i, c := range kept {
		if c == '\r' || c == '\n' {
			kept[i] = ' '
		}
	}
	p.lines = append(p.lines, field{keep(&p.store, name), kept})
}

func write[T text](p *response, b T) (int, error) {
	if !p.conn.beat.mine() {
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

func (p *response) Write(b []byte) (int, error)       { return write(p, b) }
func (p *response) WriteString(s string) (int, error) { return write(p, s) }

// answer sends what the handler wrote.
func (k *conn) answer(x *exchange) error {
	if k.late != nil {
		return k.late.finish(x)
	}
	if x.out == nil {
		x.out = make([]byte, 0, 512)
	}
	x.complete(x.header, x.body)
	out := appendField(statusLine(x.out, x.status), "Date", k.date.now())
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

// complete takes away the fields that are the server's own, and finds out the type of the
// body if the handler did not say it. The handler for the byte API leaves them alone.
func (p *response) complete(h http.Header, body []byte) {
	typed := len(body) == 0 || get(p.lines, "Content-Type") != nil
	if h == nil {
		if !typed {
			p.set("Content-Type", []byte(http.DetectContentType(body)))
		}
		return
	}
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Connection", "Date"} {
		delete(h, name)
	}
	if !typed && h.Get("Content-Type") == "" {
		h.Set("Content-Type", http.DetectContentType(body))
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

// date is the time in HTTP's format, formatted once a second.
type date struct{ cached atomic.Pointer[stamp] }

type stamp struct {
	second int64
	text   []byte
}

func (d *date) now() []byte {
	now := time.Now()
	s := d.cached.Load()
	if s == nil || s.second != now.Unix() {
		s = &stamp{now.Unix(), now.UTC().AppendFormat(nil, http.TimeFormat)}
		d.cached.Store(s)
	}
	return s.text
}
