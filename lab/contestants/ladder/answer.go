package main

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/ladder"
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
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case !found || len(id) > longest:
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
	switch {
	case string(q.verb) != http.MethodGet && string(q.verb) != http.MethodHead:
		p.status = http.StatusMethodNotAllowed
		return
	case !found || len(id) > longest:
		p.status = http.StatusNotFound
		return
	}
	set(p, "Content-Type", jsonType)
	set(p, echoed, q.get("x-request-id"))
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
	store  store
	key    []byte
	body   []byte
	out    []byte // with OneBuffer: the whole answer
	wrote  bool   // without OneBuffer: the head is written
}

func (p *response) reset() {
	p.status, p.lines, p.store, p.body, p.out, p.wrote = 0, p.lines[:0], p.store[:0], p.body[:0], p.out[:0], false
	clear(p.header)
}

func (p *response) Header() http.Header { return p.header }

func (p *response) WriteHeader(status int) {
	if p.conn.beat.mine() {
		p.status = status
	}
}

// set sets a field like http.Header, once for any case of its name. Line ends in the
// value become spaces.
func set[T text](p *response, name string, value T) {
	p.key = append(p.key[:0], name...)
	canonical(p.key)
	kept := keep(&p.store, value)
	for i, c := range kept {
		if c == '\r' || c == '\n' {
			kept[i] = ' '
		}
	}
	if f := lookUp(p.lines, p.key); f != nil {
		f.value = kept
		return
	}
	p.lines = append(p.lines, field{keep(&p.store, p.key), kept})
}

func appendFields(b []byte, fields []field) []byte {
	for _, f := range fields {
		b = append(append(append(append(b, f.name...), ": "...), f.value...), "\r\n"...)
	}
	return b
}

func (p *response) Write(b []byte) (int, error) {
	if !p.conn.beat.mine() {
		return 0, http.ErrHijacked
	}
	if l := p.conn.late; l != nil {
		return l.begin(p).Write(b)
	}
	p.body = append(p.body, b...)
	return len(b), nil
}

// WriteString implements io.StringWriter.
func (p *response) WriteString(s string) (int, error) {
	if !p.conn.beat.mine() {
		return 0, http.ErrHijacked
	}
	if l := p.conn.late; l != nil {
		return l.begin(p).WriteString(s)
	}
	p.body = append(p.body, s...)
	return len(s), nil
}

// answer sends what the handler wrote.
func (k *conn) answer(x *exchange) (again bool, err error) {
	if k.late != nil {
		err = k.late.finish(x)
	} else {
		err = k.writeOnce(x)
	}
	return !x.frame.close, err
}

// writeOnce builds the answer in one buffer.
func (k *conn) writeOnce(x *exchange) error {
	if x.out == nil {
		x.out = make([]byte, 0, 512)
	}
	out := statusLine(x.out, x.status)
	dated, last := x.inspect(x.header, x.body)
	if !dated {
		out = append(append(append(out, "Date: "...), k.date.now()...), "\r\n"...)
	}
	x.frame.close = x.frame.close || last
	out = appendFields(out, x.lines)
	for name, values := range x.header {
		for _, v := range values {
			out = append(append(append(append(out, name...), ": "...), v...), "\r\n"...)
		}
	}
	out = endHead(out, len(x.body), x.frame.close)
	if !x.head() {
		out = append(out, x.body...)
	}
	x.out = out
	_, _ = k.bw.Write(out) // the next one keeps the error
	return k.bw.Flush()
}

// inspect reads and removes the fields of the handler that the server must handle.
func (p *response) inspect(h http.Header, body []byte) (dated, last bool) {
	if p.header == nil {
		return p.inspectFields(body)
	}
	h.Del("Content-Length") // the body says
	h.Del("Transfer-Encoding")
	if connection := h["Connection"]; connection != nil {
		last = hasToken(connection[0], "close")
		delete(h, "Connection")
	}
	if _, typed := h["Content-Type"]; !typed && len(body) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(body))
	}
	_, dated = h["Date"]
	return dated, last
}

func (p *response) inspectFields(body []byte) (dated, last bool) {
	typed := len(body) == 0
	p.lines = slices.DeleteFunc(p.lines, func(f field) bool {
		switch string(f.name) {
		case "Content-Length", "Transfer-Encoding":
			return true
		case "Connection":
			last = hasToken(f.value, "close")
			return true
		case "Content-Type", "Content-Encoding":
			typed = true
		case "Date":
			dated = true
		}
		return false
	})
	if !typed {
		set(p, "Content-Type", http.DetectContentType(body))
	}
	return dated, last
}

// head reports whether the client wants no body.
func (x *exchange) head() bool {
	if x.conn.save.Has(ladder.Bytes) {
		return string(x.verb) == http.MethodHead
	}
	return x.std.Method == http.MethodHead
}

func statusLine(b []byte, status int) []byte {
	if status == 0 || status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
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
	if s := d.cached.Load(); s != nil && s.second == now.Unix() {
		return s.text
	}
	s := &stamp{now.Unix(), now.UTC().AppendFormat(nil, http.TimeFormat)}
	d.cached.Store(s)
	return s.text
}
