package main

import (
	"bufio"
	"net/http"
	"sync"
	"time"
)

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
	date := time.Now().UTC().AppendFormat(append(l.scratch[:0], "Date: "...), http.TimeFormat)
	_, _ = l.bw.Write(append(date, "\r\n"...))
	_, _ = l.bw.Write(endHead(l.scratch[:0], len(body), x.last))
	_, _ = l.bw.Write(body)
	*l.body = body[:0]
	bodyBuffers.Put(l.body)
	l.header, l.body = nil, nil
	return l.bw.Flush()
}
