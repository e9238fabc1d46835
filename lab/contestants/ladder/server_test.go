package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/ladder"
	"github.com/spillway-go/spillway/load/usage"
)

// script is a client in memory: it sends its requests one after the other and keeps
// the answers.
type script struct {
	net.Conn
	mu      sync.Mutex
	changed sync.Cond
	in      []byte
	at      int // position in in that is read next
	more    int // requests to come, each with the answer before it
	next    string
	late    bool // the read deadline has passed
	out     []byte
	drop    bool // of answers
}

func scripted(input string) *script {
	s := &script{in: []byte(input)}
	s.changed.L = &s.mu
	return s
}

func (s *script) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.at == len(s.in) {
		switch {
		case s.late:
			return 0, os.ErrDeadlineExceeded
		case s.more == 0:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
	n := copy(b, s.in[s.at:])
	s.at += n
	return n, nil
}

func (s *script) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drop {
		s.out = append(s.out, b...)
	}
	if s.more > 0 {
		s.more--
		s.in, s.at = append(s.in[:0], s.next...), 0
		s.changed.Broadcast()
	}
	return len(b), nil
}

func (s *script) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = !t.IsZero()
	s.changed.Broadcast()
	return nil
}

func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) Close() error                     { return nil }

// converse returns what a server with these savings answers to the bytes.
func converse(save ladder.Rungs, input string) string {
	c := scripted(input)
	serveSmall(save, c)
	return string(c.out)
}

// statuses reads answers until one cannot be read.
func statuses(t testing.TB, out, method string) (all []int) {
	t.Helper()
	br := bufio.NewReader(strings.NewReader(out))
	for {
		if _, err := br.Peek(1); err == io.EOF {
			return all
		}
		res, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("an answer cannot be read: %v in %q", err, out)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatalf("a body cannot be read: %v in %q", err, out)
		}
		all = append(all, res.StatusCode)
	}
}

const get1 = "GET " + prefix + "P1 HTTP/1.1\r\n"

func TestWhatIsMalformedIsRefusedOnEveryRung(t *testing.T) {
	many := strings.Repeat("A: b\r\n", maxFields)
	for name, c := range map[string]struct {
		input string
		want  []int
	}{
		"right":                 {get1 + "Host: h\r\n\r\n", []int{200}},
		"an empty value":        {get1 + "Host: h\r\nA:\r\nB: \r\n\r\n", []int{200}},
		"two in one write":      {strings.Repeat(get1+"Host: h\r\n\r\n", 2), []int{200, 200}},
		"an unknown path":       {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", []int{404}},
		"another method":        {"PUT " + prefix + "P1 HTTP/1.1\r\nHost: h\r\n\r\n", []int{404}},
		"asked to close":        {get1 + "Host: h\r\nConnection: x, Close\r\n\r\n" + get1 + "Host: h\r\n\r\n", []int{200}},
		"asked to keep alive":   {strings.Repeat(get1+"Host: h\r\nConnection: Keep-Alive\r\n\r\n", 2), []int{200, 200}},
		"an empty body":         {get1 + "Host: h\r\nContent-Length: 0\r\n\r\n", []int{200}},
		"a body":                {get1 + "Host: h\r\nContent-Length: 4\r\n\r\nGET " + get1 + "Host: h\r\n\r\n", []int{400}},
		"HTTP/1.0":              {"GET " + prefix + "P1 HTTP/1.0\r\nHost: h\r\n\r\n" + get1, []int{400}},
		"HTTP/2":                {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", []int{400}},
		"no HTTP":               {"GET / FTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"no version":            {"GET /\r\nHost: h\r\n\r\n", []int{400}},
		"two spaces":            {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"a space in the target": {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"no method":             {" / HTTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"a method with a comma": {"GE,T / HTTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"a whole URL":           {"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"a control character":   {"GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"no host":               {get1 + "\r\n", []int{400}},
		"two hosts":             {get1 + "Host: a\r\nHost: b\r\n\r\n", []int{400}},
		"a host with a slash":   {get1 + "Host: a/b\r\n\r\n", []int{400}},
		"a space in a name":     {get1 + "Host: h\r\nA : b\r\n\r\n", []int{400}},
		"no name":               {get1 + "Host: h\r\n: b\r\n\r\n", []int{400}},
		"no colon":              {get1 + "Host: h\r\nA\r\n\r\n", []int{400}},
		"a NUL in a value":      {get1 + "Host: h\r\nA: \x00\r\n\r\n", []int{400}},
		"two lengths":           {get1 + "Host: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", []int{400}},
		"an escape cut off":     {"GET /%4 HTTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"an escape of no byte":  {"GET /%4g HTTP/1.1\r\nHost: h\r\n\r\n", []int{400}},
		"escaped letters":       {"GET /%61p%69/v1/patients/P1 HTTP/1.1\r\nHost: h\r\n\r\n", []int{200}},
		"chunks":                {get1 + "Host: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400}},
		"an expectation":        {get1 + "Host: h\r\nExpect: 100-continue\r\n\r\n", []int{400}},
		"fields at the limit":   {get1 + "Host: h\r\n" + many[len("A: b\r\n"):] + "\r\n", []int{200}},
		"fields past it":        {get1 + "Host: h\r\n" + many + "\r\n", []int{400}},
		"a head at the limit":   {ofSize(maxHead), []int{200}},
		"a head past it":        {ofSize(2*maxHead + 1), []int{400}},
		"an id too long":        {"GET " + prefix + strings.Repeat("x", longest+1) + " HTTP/1.1\r\nHost: h\r\n\r\n", []int{404}},
		"cut off":               {get1 + "Host:", []int{400}},
		"nothing":               {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for save := range ladder.AllRungs + 1 {
				if got := statuses(t, converse(save, c.input), "GET"); fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("with %q: %v, want %v", save, got, c.want)
				}
			}
		})
	}
}

// ofSize is a valid request of that many bytes.
func ofSize(n int) string {
	head := get1 + "Host: h\r\nA: "
	return head + strings.Repeat("x", n-len(head)-4) + "\r\n\r\n"
}

// Lone line feeds, folded lines and repeated lengths can smuggle requests past
// another parser. The parser of net/http accepts them.
func TestTheOwnParserWantsWholeLineEnds(t *testing.T) {
	for _, input := range []string{
		"GET / HTTP/1.1\nHost: h\n\n", get1 + "Host: h\n\r\n", get1 + "Host: h\r\nA: b\r\n c\r\n\r\n", get1 + "Host: h\r\nA: b\rc\r\n\r\n",
		"\r\n" + get1 + "Host: h\r\n\r\n",
	} {
		if got := statuses(t, converse(ladder.AllRungs, input), "GET"); fmt.Sprint(got) != "[400]" {
			t.Errorf("%q: %v", input, got)
		}
	}
}

// The contents of reused memory must not appear in the next answer.
func TestNothingIsLeftOverForTheNextRequest(t *testing.T) {
	first := get1 + "Host: h\r\n" + echoed + ": first\r\n\r\n"
	second := "GET " + prefix + "P2 HTTP/1.1\r\nHost: h\r\n\r\n"
	for save := range ladder.AllRungs + 1 {
		out := converse(save, first+second+"PUT / HTTP/1.1\r\nHost: h\r\n\r\n")
		at := strings.LastIndex(out, "HTTP/1.1 200")
		if at <= 0 || strings.Contains(out[at:], "first") || strings.Contains(out[at:], "P1") || strings.Count(out, patient) != 2 {
			t.Errorf("with %q: %q", save, out)
		}
	}
}

func TestTheByteAPILocatesARequest(t *testing.T) {
	for target, want := range map[string]string{"/a/b?x=%20": "/a/b x=%20", "/a%2Fc%20d": "/a/c d ", "/%4": "400", "/%zz": "400"} {
		var q request
		head := "GET " + target + " HTTP/1.1\r\nHOST: h:80\r\nx-request-ID: Some\r\n\r\n"
		if err := q.parse(bufio.NewReaderSize(strings.NewReader(head), maxHead)); err != nil {
			t.Fatal(err)
		}
		got := "400"
		if q.toBytes(true) == nil {
			got = fmt.Sprintf("%s %s", q.path, q.query)
		}
		if got != want || string(q.host) != "h:80" || string(get(q.fields, echoed)) != "Some" {
			t.Errorf("%q is %q, want %q; %q", target, got, want, q.fields)
		}
	}
}

// What the handler leaves to the server, in either API.
func TestTheServerCompletesAnAnswer(t *testing.T) {
	var p response
	for range 2 { // the second time in the memory of the first
		p.reset(nil)
		p.complete(nil, []byte("{}"))
		if got := fmt.Sprintf("%s", p.lines); got != "[{Content-Type text/plain; charset=utf-8}]" {
			t.Error(got)
		}
	}
	h := http.Header{"Content-Length": {"7"}, "Connection": {"close"}, "Date": {"now"}, "A": {"b"}}
	p.reset(nil)
	p.complete(h, []byte("{}"))
	if got := fmt.Sprintf("%v %s", h, p.lines); got != "map[A:[b]] [{Content-Type text/plain; charset=utf-8}]" {
		t.Error(got)
	}
}

func TestTheContextEndsWhenTheClientLeaves(t *testing.T) {
	a, b := net.Pipe()
	w := newWatch(a)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.start(cancel)
	b.Close()
	<-ctx.Done()
	w.stop()
	a.Close()
}

func TestTheByteReadAheadIsReadFirst(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	w := newWatch(a)
	w.start(func() { t.Error("the client did not leave") })
	go func() {
		_, _ = b.Write([]byte("abc"))
		b.Close()
	}()
	w.mu.Lock()
	for w.reading {
		w.ended.Wait()
	}
	w.mu.Unlock()
	w.stop()
	if got, err := io.ReadAll(w); string(got) != "abc" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// allocations are those of one request, without a network.
func allocations(save ladder.Rungs) uint64 {
	const requests = 200
	run := func(n int) uint64 {
		c := scripted(wire)
		c.next, c.more, c.drop = wire, n, true
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		serveSmall(save, c)
		runtime.ReadMemStats(&to)
		return to.Mallocs - from.Mallocs
	}
	run(10) // pools are filled
	least := run(requests)
	for range 4 { // the runtime allocates too, now and then
		least = min(least, run(requests))
	}
	return least / requests
}

func TestEverySavingOfMemorySavesAllocations(t *testing.T) {
	if usage.Race {
		t.Skip("the race detector allocates")
	}
	all, none := allocations(ladder.AllRungs), allocations(0)
	if all != 0 {
		t.Errorf("%d allocations a request with every saving, want 0", all)
	}
	for _, r := range []ladder.Rungs{ladder.State, ladder.Bytes, ladder.Parser, ladder.Unwatched} {
		if got := allocations(ladder.AllRungs &^ r); got == 0 {
			t.Errorf("no allocations without %s", r)
		}
	}
	for _, r := range []ladder.Rungs{ladder.Workers, ladder.OneBuffer} {
		if got := allocations(ladder.AllRungs &^ r); got != 0 {
			t.Errorf("%d allocations a request without %s, want 0", got, r)
		}
	}
	if got := allocations(ladder.State); got >= none {
		t.Errorf("%d allocations with pooled state, %d without", got, none)
	}
}

// BenchmarkRung is a request on the small server and on those at its ends,
// without a network:
//
//	go test ./lab/contestants/ladder -run '^$' -bench Rung -benchmem
func BenchmarkRung(b *testing.B) {
	run := func(name string, serve func(net.Conn)) {
		b.Run(name, func(b *testing.B) {
			c := scripted(wire)
			c.next, c.more, c.drop = wire, b.N, true
			b.ReportAllocs()
			b.ResetTimer()
			serve(c)
		})
	}
	bench := func(name string, save ladder.Rungs) { run(name, func(c net.Conn) { serveSmall(save, c) }) }
	bench("saving=none", 0)
	for _, r := range ladder.Ordered {
		name := strings.ReplaceAll(r.String(), " ", "-")
		bench("with="+name, r)
		bench("without="+name, ladder.AllRungs&^r)
	}
	bench("saving=all", ladder.AllRungs)
	run("fasthttp", func(c net.Conn) { _ = fastHTTP(answerFast).ServeConn(c) })
}

// FuzzServer searches for a request that the own parser accepts and net/http reads
// differently or rejects, and for one that makes a rung panic or send an unreadable
// answer.
func FuzzServer(f *testing.F) {
	for _, s := range []string{
		wire, get1 + "Host: h\r\n\r\n", get1 + "Host: h\r\nContent-Length: 3\r\n\r\nabc", get1 + "Host: h\r\nA:b\r\na: \t c \r\n\r\n",
		"GET /a?b%zz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: a , close\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n",
		get1 + "Host: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", get1 + "Host:\r\n\r\n",
	} {
		f.Add([]byte(s), uint8(0))
		f.Add([]byte(s), uint8(ladder.AllRungs))
	}
	f.Fuzz(func(t *testing.T, input []byte, rungs uint8) {
		statuses(t, converse(ladder.Rungs(rungs)&ladder.AllRungs, string(input)), "GET")
		var own request
		if own.parse(bufio.NewReaderSize(bytes.NewReader(input), maxHead)) != nil || own.bad || own.hosts != 1 {
			return
		}
		std, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(input)))
		if err != nil {
			// net/http also parses what the byte API leaves alone, the target.
			if strings.Contains(err.Error(), "parse ") {
				return
			}
			t.Fatalf("taken, but net/http says %v: %q", err, input)
		}
		if std.Method != string(own.found.method) || std.RequestURI != string(own.found.target) || std.ProtoMinor != 1 ||
			std.ContentLength != 0 || std.Close && !own.last {
			t.Fatalf("read as %+v, by net/http as %+v: %q", own, std, input)
		}
		_ = own.toBytes(true) // it rejects more than net/http does
		count := 0
		for name, values := range std.Header {
			if got := get(own.fields, name); string(got) != values[0] {
				t.Fatalf("%s is %q, by net/http %q: %q", name, got, values[0], input)
			}
			count += len(values)
		}
		if own.hosts+count < len(own.found.fields) {
			t.Fatalf("%d fields, by net/http %d: %q", len(own.found.fields), count, input)
		}
	})
}
