package main

import (
	"bufio"
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// layers are the writers of an answer in net/http: a buffer that finds the length of
// a short body, a writer that writes the head before it, and the connection's buffer.
type layers struct {
	x       *response
	header  http.Header // as it was when the body began
	body    *bufio.Writer
	bw      *bufio.Writer
	last    bool // of the connection
	noBody  bool
	scratch [128]byte
}

var bodyBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 2048) }}

func (l *layers) begin(p *response) *bufio.Writer {
	if l.body == nil {
		l.x, l.body = p, bodyBuffers.Get().(*bufio.Writer)
		l.body.Reset(l)
		l.header = p.header.Clone() // later changes by the handler have no effect
	}
	return l.body
}

// Write gets the body when its buffer is flushed. The experiment's bodies fit
// into it.
func (l *layers) Write(b []byte) (int, error) {
	l.writeHead(b)
	if l.noBody {
		return len(b), nil
	}
	return l.bw.Write(b)
}

func (l *layers) writeHead(body []byte) {
	p := l.x
	p.wrote = true
	dated, last := p.inspect(l.header, body)
	l.last = l.last || last
	l.writeStatus(cmp.Or(p.status, http.StatusOK))
	if l.header != nil {
		_ = l.header.Write(l.bw)
	}
	_, _ = l.bw.Write(appendFields(l.scratch[:0], p.lines))
	if !dated {
		date := time.Now().UTC().AppendFormat(append(l.scratch[:0], "Date: "...), http.TimeFormat)
		_, _ = l.bw.Write(append(date, "\r\n"...))
	}
	_, _ = l.bw.Write(endHead(l.scratch[:0], len(body), l.last))
}

// writeStatus writes the status line piece by piece.
func (l *layers) writeStatus(status int) {
	_, _ = l.bw.WriteString("HTTP/1.1 ")
	_, _ = l.bw.Write(strconv.AppendInt(l.scratch[:0], int64(status), 10))
	_ = l.bw.WriteByte(' ')
	_, _ = l.bw.WriteString(http.StatusText(status))
	_, _ = l.bw.WriteString("\r\n")
}

func (l *layers) finish(x *exchange) error {
	l.x, l.last, l.noBody = &x.response, x.frame.close, x.head()
	if l.body != nil {
		_ = l.body.Flush() // the next writer keeps the error
		l.body.Reset(nil)
		bodyBuffers.Put(l.body)
		l.body = nil
	}
	if !x.wrote {
		l.header = x.response.header.Clone()
		l.writeHead(nil)
	}
	x.frame.close = l.last
	l.x, l.header = nil, nil
	return l.bw.Flush()
}
