package loadgen

import (
	"bytes"
	"errors"
	"io"
	"time"
)

const (
	// maxHead bounds the status line and headers of an answer, the interim
	// answers before it included, and each line of a chunked body.
	maxHead = 64 << 10

	smallBuffer = 4 << 10
	largeBuffer = 64 << 10 // for bodies that exceed smallBuffer

	bodyChunked = -1
	bodyToEnd   = -2 // the body ends with the connection
)

var (
	errStatusLine = errors.New("malformed answer: want a status line such as HTTP/1.1 200 OK")
	errHeaderLine = errors.New("malformed answer: want header lines of the form Name: value")
	errLength     = errors.New("malformed answer: Content-Length is no number, or there are several")
	errEncoding   = errors.New("malformed answer: its Transfer-Encoding is not chunked")
	errChunk      = errors.New("malformed answer: its chunked body")
	errHeadSize   = errors.New("malformed answer: more than 64 KiB of headers")
)

// answers reads the HTTP/1.1 answers of one connection, one after the other. It allocates nothing
// once its buffer has its size.
type answers struct {
	src   io.Reader
	buf   []byte // buf[r:w] is read and not used yet
	r, w  int
	left  int  // bytes that the lines of a head may still take
	begun bool // at least a byte of the current answer has come
	came  int  // bytes of the current answer

	first  time.Time // when the first byte of the current answer was read
	reason string    // Spillway-Reason of the current answer, if it is a refusal
}

func newAnswers(src io.Reader) answers { return answers{src: src, buf: make([]byte, smallBuffer)} }

// head holds the relevant parts of the status line and the headers of an answer.
type head struct {
	status int
	length int64         // length of the body, or bodyChunked or bodyToEnd
	keep   bool          // the connection may be used again
	after  time.Duration // value of Retry-After
}

// head reads the next answer up to its body, and skips interim answers. An answer to HEAD has no
// body, whatever its headers announce.
func (a *answers) head(toHEAD bool) (head, error) {
	a.left, a.begun = maxHead, a.w > a.r
	if a.begun {
		a.first = time.Now()
	}
	for {
		h, err := a.oneHead(toHEAD)
		if err != nil || h.status/100 != 1 {
			return h, err
		}
		if h.status == 101 { // the bytes after a 101 are not HTTP
			h.keep = false
			return h, nil
		}
	}
}

func (a *answers) oneHead(toHEAD bool) (h head, err error) {
	line, err := a.line()
	if err != nil {
		return h, err
	}
	minor, status, ok := parseStatus(trimCR(line))
	if !ok {
		return h, errStatusLine
	}
	h = head{status: status, length: bodyToEnd}
	reason := ""
	var closes, keeps, chunked bool
	for {
		line, err := a.field()
		if err != nil {
			return h, err
		}
		if line = trimCR(line); len(line) == 0 {
			break
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 1 || isBlank(line[0]) {
			return h, errHeaderLine
		}
		name, value := line[:colon], trimBlanks(line[colon+1:])
		switch {
		case is(name, "content-length"):
			n, ok := parseLength(value)
			if !ok || h.length >= 0 {
				return h, errLength
			}
			h.length = n
		case is(name, "transfer-encoding") && minor > 0:
			if chunked || !is(value, "chunked") {
				return h, errEncoding
			}
			chunked = true
		case is(name, "retry-after"):
			h.after = parseAfter(value)
		case isRefusal(status) && is(name, "spillway-reason"):
			reason = parseReason(value, a.reason)
		case is(name, "connection"):
			closes = closes || hasToken(value, "close")
			keeps = keeps || hasToken(value, "keep-alive")
		}
	}
	a.reason = reason
	h.keep = !closes && (minor > 0 || keeps)
	switch {
	case toHEAD || status/100 == 1 || status == 204 || status == 304:
		h.length = 0
	case chunked:
		h.length = bodyChunked
	case h.length == bodyToEnd:
		h.keep = false
	}
	return h, nil
}

// body reads the body of an answer whose head was read, and appends it to *dst
// unless dst is nil.
func (a *answers) body(length int64, dst *[]byte) error {
	switch length {
	case bodyChunked:
		return a.chunks(dst)
	case bodyToEnd:
		for {
			a.take(a.w-a.r, dst)
			if err := a.more(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	return a.exactly(length, dst)
}

func (a *answers) exactly(n int64, dst *[]byte) error {
	for {
		k := min(n, int64(a.w-a.r))
		a.take(int(k), dst)
		if n -= k; n == 0 {
			return nil
		}
		if n > int64(len(a.buf)) && len(a.buf) < largeBuffer { // all bytes read are taken
			a.buf = make([]byte, largeBuffer)
			a.r, a.w = 0, 0
		}
		if err := a.need(1); err != nil {
			return err
		}
	}
}

func (a *answers) chunks(dst *[]byte) error {
	for {
		a.left = maxHead
		line, err := a.strictLine()
		if err != nil {
			return err
		}
		n, ok := parseChunkSize(line)
		if !ok {
			return errChunk
		}
		if n == 0 {
			break
		}
		if err := a.exactly(n, dst); err != nil {
			return err
		}
		if err := a.need(2); err != nil {
			return err
		}
		if a.buf[a.r] != '\r' || a.buf[a.r+1] != '\n' {
			return errChunk
		}
		a.r += 2
	}
	a.left = maxHead
	for { // trailers
		if line, err := a.strictLine(); err != nil || len(line) == 0 {
			return err
		}
	}
}

// take uses the next n bytes, which must have been read.
func (a *answers) take(n int, dst *[]byte) {
	if dst != nil {
		*dst = append(*dst, a.buf[a.r:a.r+n]...)
	}
	a.r += n
}

// field returns the next line, as line does, joined with its continuation lines. A line that begins
// with a blank continues the line before (RFC 9112, section 5.2). Blanks replace the line ends in
// between.
func (a *answers) field() ([]byte, error) {
	for n := 0; ; {
		line, err := a.lineFrom(n)
		if err != nil || len(trimCR(line)) == 0 {
			return line, err
		}
		n = len(line) + 1
		a.r, a.left = a.r-n, a.left+n // give the line back
		if err := a.need(n + 1); err != nil {
			return nil, err
		}
		line = a.buf[a.r : a.r+n]
		if !isBlank(a.buf[a.r+n]) {
			a.r, a.left = a.r+n, a.left-n
			return line[:n-1], nil
		}
		copy(line[len(trimCR(line[:n-1])):], "  ")
	}
}

// line returns the next line without its line feed. The line is valid until the next read.
func (a *answers) line() ([]byte, error) { return a.lineFrom(0) }

// lineFrom is like line. It does not search the first searched bytes, which contain no line feed.
func (a *answers) lineFrom(searched int) ([]byte, error) {
	for {
		if i := bytes.IndexByte(a.buf[a.r+searched:a.w], '\n'); i >= 0 {
			i += searched
			line := a.buf[a.r : a.r+i]
			a.r += i + 1
			if a.left -= i + 1; a.left < 0 {
				return nil, errHeadSize
			}
			return line, nil
		}
		if searched = a.w - a.r; searched >= a.left {
			return nil, errHeadSize
		}
		if err := a.need(searched + 1); err != nil {
			return nil, err
		}
	}
}

// strictLine returns the next line without its CRLF, and accepts no other end.
func (a *answers) strictLine() ([]byte, error) {
	line, err := a.line()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(line, '\r') != len(line)-1 || len(line) == 0 {
		return nil, errChunk
	}
	return line[:len(line)-1], nil
}

// need reads until at least n unused bytes are in the buffer.
func (a *answers) need(n int) error {
	for a.w-a.r < n {
		if err := a.more(); err == io.EOF {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
	return nil
}

// more reads at least a byte.
func (a *answers) more() error {
	switch {
	case a.r == a.w:
		a.r, a.w = 0, 0
	case a.w == len(a.buf) && a.r > 0:
		a.r, a.w = 0, copy(a.buf, a.buf[a.r:a.w])
	case a.w == len(a.buf): // one long line
		a.buf = append(a.buf, make([]byte, len(a.buf))...)
	}
	for range 10 {
		n, err := a.src.Read(a.buf[a.w:])
		if n > 0 {
			a.w += n
			a.came += n
			if !a.begun {
				a.begun, a.first = true, time.Now()
			}
			return nil // the next read returns an error again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
