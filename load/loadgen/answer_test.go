package loadgen

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// readAnswer reads one answer and the bytes after it.
func readAnswer(src io.Reader, toHEAD bool) (h head, body, rest []byte, err error) {
	a := newAnswers(src)
	if h, err = a.head(toHEAD); err == nil {
		err = a.body(h.length, &body)
	}
	rest, _ = io.ReadAll(io.MultiReader(bytes.NewReader(a.buf[a.r:a.w]), src))
	return h, body, rest, err
}

// readTwin reads the same with net/http.
func readTwin(src io.Reader, toHEAD bool) (h head, body, rest []byte, err error) {
	method := http.MethodGet
	if toHEAD {
		method = http.MethodHead
	}
	r := bufio.NewReader(src)
	for {
		answer, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return h, nil, nil, err
		}
		if answer.StatusCode/100 == 1 && answer.StatusCode != 101 {
			continue
		}
		if body, err = io.ReadAll(answer.Body); err == nil {
			rest, err = io.ReadAll(r)
		}
		return head{status: answer.StatusCode, keep: !answer.Close && answer.StatusCode != 101}, body, rest, err
	}
}

const ok200 = "HTTP/1.1 200 OK\r\n"

var answerTexts = []string{
	ok200 + "Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n",
	ok200 + "content-length:  5 \r\nConnection: keep-alive, Close\r\n\r\nhello",
	ok200 + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;ext=1\r\n0123456789\r\n0\r\n\r\nrest",
	ok200 + "Transfer-Encoding: Chunked\r\nContent-Length: 3\r\n\r\n2 \r\nhi\r\n000\r\nTrailer: x\r\n\r\n",
	ok200 + "\r\nuntil the end",
	"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi",
	"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi",
	"HTTP/1.1 204 No Content\r\n\r\nnext",
	"HTTP/1.1 304 Not Modified\nContent-Length: 100\n\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nx",
	"HTTP/1.1 503\r\nContent-Length: 1\r\n\r\nx",
	ok200 + "Content-Length : 5\r\nContent-Length: 2\r\n\r\nhi",
	ok200 + "Content-Length: 2\r\nWWW-Authenticate: Basic realm=\"a\",\r\n\tBearer realm=\"b\"\r\n\r\nhi",
}

// Every answer that net/http accepts is read in the same way. net/http may refuse more: header
// lines that do not matter here, and parts that are too long.
func FuzzAnswersAreReadAsNetHTTPReadsThem(f *testing.F) {
	for _, text := range append(answerTexts, refusedAnswers()...) {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, toHEAD bool) {
		h, body, rest, err := readAnswer(bytes.NewReader(data), toHEAD)
		if err != nil {
			return
		}
		slow, slowBody, slowRest, slowErr := readAnswer(iotest.OneByteReader(bytes.NewReader(data)), toHEAD)
		if slowErr != nil || slow != h || !bytes.Equal(slowBody, body) || !bytes.Equal(slowRest, rest) {
			t.Fatalf("byte by byte %+v %q %q %v, at once %+v %q %q", slow, slowBody, slowRest, slowErr, h, body, rest)
		}
		twin, twinBody, twinRest, err := readTwin(bytes.NewReader(data), toHEAD)
		if err != nil {
			for _, stricter := range []string{"malformed MIME header", "non-data", "too long", "suspiciously long"} {
				if strings.Contains(err.Error(), stricter) {
					return
				}
			}
			t.Fatalf("read %+v %q, net/http refuses it: %v", h, body, err)
		}
		if h.status != twin.status || h.keep != twin.keep || !bytes.Equal(body, twinBody) || !bytes.Equal(rest, twinRest) {
			t.Fatalf("read %+v %q and then %q, net/http %+v %q and then %q", h, body, rest, twin, twinBody, twinRest)
		}
	})
}

func TestAnswersThatServersSendAreRead(t *testing.T) {
	for _, text := range answerTexts {
		if _, _, _, err := readAnswer(strings.NewReader(text), false); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 300 {
		body := make([]byte, random.IntN(1<<random.IntN(18)))
		for j := range body {
			body[j] = byte(random.Uint32())
		}
		answer := http.Response{ProtoMajor: 1, ProtoMinor: 1, StatusCode: 200 + random.IntN(4), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
		answer.ContentLength = -1
		if i%3 > 0 {
			answer.ContentLength = int64(len(body))
		} else {
			answer.TransferEncoding = []string{"chunked"}
		}
		for range random.IntN(30) {
			answer.Header.Add(fmt.Sprintf("X-%d", random.IntN(99)), strings.Repeat("v", random.IntN(300)))
		}
		var wire bytes.Buffer
		if err := answer.Write(&wire); err != nil {
			t.Fatal(err)
		}
		for _, src := range []io.Reader{bytes.NewReader(wire.Bytes()), iotest.HalfReader(bytes.NewReader(wire.Bytes())), iotest.DataErrReader(bytes.NewReader(wire.Bytes()))} {
			h, got, rest, err := readAnswer(src, false)
			if err != nil || h.status != answer.StatusCode || !h.keep || !bytes.Equal(got, body) || len(rest) > 0 {
				t.Fatalf("%d bytes: %+v, %d bytes and %d more, %v", len(body), h, len(got), len(rest), err)
			}
		}
	}
}

// A header continued on the next line is obsolete, but net/http still reads it. Such an answer was
// once an error, and its connection was closed.
func TestAHeaderThatGoesOnInTheNextLineIsRead(t *testing.T) {
	for text, want := range map[string]head{
		ok200 + "A: b\r\n continued\r\nContent-Length: 2\r\n\r\nhi":                         {status: 200, length: 2, keep: true},
		ok200 + "Content-Length: 2\r\nA: b\r\n c\r\n\td\r\n  \r\n\r\nhi":                    {status: 200, length: 2, keep: true},
		ok200 + "Content-Length:\r\n 2\r\nA:\n b\n\nhi":                                     {status: 200, length: 2, keep: true},
		ok200 + "Content-Length: 2\r\nConnection: x,\r\n close\r\n\r\nhi":                   {status: 200, length: 2},
		ok200 + "Content-Length: 2\r\nRetry-After: \r\n\t7\r\n\r\nhi":                       {status: 200, length: 2, keep: true, after: 7 * time.Second},
		ok200 + "A: b\r\n Content-Length: 5\r\nContent-Length: 2\r\n\r\nhi":                 {status: 200, length: 2, keep: true},
		ok200 + "Content-Length: 2\r\nA: b" + strings.Repeat("\r\n c", 5000) + "\r\n\r\nhi": {status: 200, length: 2, keep: true},
	} {
		for _, src := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			h, body, rest, err := readAnswer(src, false)
			twin, twinBody, _, twinErr := readTwin(strings.NewReader(text), false)
			if err != nil || h != want || string(body) != "hi" || len(rest) > 0 {
				t.Errorf("%.60q: %+v %q %q %v", text, h, body, rest, err)
			}
			if twinErr != nil || twin.keep != h.keep || string(twinBody) != "hi" {
				t.Errorf("%.60q: net/http %+v %q %v", text, twin, twinBody, twinErr)
			}
		}
	}
	long := ok200 + "A: b" + strings.Repeat("\r\n "+strings.Repeat("c", 100), maxHead/100) + "\r\n\r\n"
	if _, _, _, err := readAnswer(strings.NewReader(long), false); !errors.Is(err, errHeadSize) {
		t.Errorf("lines without an end: %v", err)
	}
}

func refusedAnswers() []string {
	return []string{
		"", "\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1  200\r\n\r\n", "ICY 200 OK\r\n\r\n",
		ok200 + "no colon\r\n\r\n", ok200 + ": no name\r\n\r\n", ok200 + " A: b\r\n\r\n", ok200 + "A: b\r\n continued", ok200 + "Content-Length: 1\r\n 2\r\n\r\nhi",
		ok200 + "Content-Length: -1\r\n\r\n", ok200 + "Content-Length: 1e3\r\n\r\n", ok200 + "Content-Length:\r\n\r\n",
		ok200 + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", ok200 + "Content-Length: 9999999999999999999\r\n\r\n",
		ok200 + "Content-Length: 5\r\n\r\nhell", ok200 + "Content-Length: 5\r\n",
		ok200 + "Transfer-Encoding: gzip\r\n\r\n", ok200 + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		ok200 + "Transfer-Encoding: chunked\r\n\r\n2\nhi\r\n0\r\n\r\n", ok200 + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n",
		ok200 + "Transfer-Encoding: chunked\r\n\r\n-1\r\n", ok200 + "Transfer-Encoding: chunked\r\n\r\n\r\n", ok200 + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		ok200 + "Transfer-Encoding: chunked\r\n\r\n0\r\n", ok200 + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\n",
		ok200 + "A: " + strings.Repeat("b", maxHead), strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxHead/20),
	}
}

func TestAnswersThatAreNoneAreRefused(t *testing.T) {
	for _, text := range refusedAnswers() {
		if h, body, _, err := readAnswer(strings.NewReader(text), false); err == nil {
			t.Errorf("%.80q is read as %+v %q", text, h, body)
		}
	}
	broken := errors.New("broken")
	if _, _, _, err := readAnswer(io.MultiReader(strings.NewReader(ok200), iotest.ErrReader(broken)), false); !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's error", err)
	}
	if h, _, rest, err := readAnswer(strings.NewReader(ok200+"Content-Length: 5\r\n\r\nnext"), true); err != nil || h.length != 0 || !slices.Equal(rest, []byte("next")) {
		t.Errorf("to HEAD: %+v, then %q, %v", h, rest, err)
	}
}
