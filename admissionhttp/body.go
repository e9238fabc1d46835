package admissionhttp

import (
	"io"
	"net/http"
	"sync/atomic"
)

// posted is the work of a request with a body. The handler gets a copy of the request, since
// net/http looks at the type of the body of its own while it answers.
type posted struct {
	work
	body    body
	request http.Request
}

// serve runs next with a copy of r that has the scope and the body of p. Values that a router and a
// form write into the copy are also needed outside.
func (p *posted) serve(next http.Handler, r *http.Request) {
	inner := &p.request
	if p.scope.work == nil {
		*inner = *r
	} else {
		inner = r.WithContext(&p.scope)
	}
	p.body.work, p.body.ReadCloser = &p.work, r.Body
	inner.Body = &p.body
	defer func() { r.Pattern, r.MultipartForm = inner.Pattern, inner.MultipartForm }()
	p.run(next, inner)
}

// hasBody reports whether reading the body may wait for the client. In HTTP/2 a body of no bytes
// may wait for its end.
func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// body is the body of a request, as the handler sees it. The permit is paused while a Read waits for
// the client. Other goroutines may read, and go on when the handler has returned.
type body struct {
	io.ReadCloser
	work  *work
	ended atomic.Bool // nothing will come
}

func (b *body) Read(p []byte) (n int, err error) {
	if b.ended.Load() {
		return b.ReadCloser.Read(p)
	}
	b.work.wait(&b.work.reading)
	defer b.work.goOn(&b.work.reading)
	if n, err = b.ReadCloser.Read(p); err == io.EOF {
		b.ended.Store(true)
	}
	return n, err
}

// Close waits too: net/http reads the rest of a short body, to keep the connection.
func (b *body) Close() error {
	if b.ended.Load() {
		return b.ReadCloser.Close()
	}
	b.work.wait(&b.work.reading)
	defer b.work.goOn(&b.work.reading)
	return b.ReadCloser.Close()
}
