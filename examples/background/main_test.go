package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// started is a service on loopback; stop ends it and returns what was left.
type started struct {
	url  string
	stop func() leftovers
}

func start(t *testing.T, workers, queue int, drain time.Duration, send func(context.Context, reminder) error) started {
	t.Helper()
	svc, err := newService(workers, queue, send, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	left := make(chan leftovers, 1)
	go func() {
		l, err := svc.serve(ctx, listener, stopping{finish: time.Minute, drain: drain})
		if err != nil {
			t.Error(err)
		}
		left <- l
	}()
	return started{"http://" + listener.Addr().String(), func() leftovers { cancel(); return <-left }}
}

func post(t *testing.T, url, body string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Post(url+"/reminders", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

const valid = `{"patient":"P000042","text":"tomorrow at 9"}`

func TestAJobOutlivesItsRequest(t *testing.T) {
	answered, outcome := make(chan struct{}), make(chan error, 1)
	s := start(t, 1, 1, time.Minute, func(ctx context.Context, r reminder) error {
		<-answered // net/http ends the request's context with the answer
		if r.Patient != "P000042" {
			outcome <- errors.New("sent to " + r.Patient)
		}
		outcome <- ctx.Err()
		return ctx.Err()
	})
	resp, body := post(t, s.url, valid)
	if resp.StatusCode != http.StatusAccepted || body != `{"id":1}` {
		t.Errorf("%s, %q", resp.Status, body)
	}
	http.DefaultClient.CloseIdleConnections()
	close(answered)
	if err := <-outcome; err != nil {
		t.Error(err)
	}
	if left := s.stop(); left.sent != 1 || len(left.abandoned) != 0 {
		t.Errorf("%+v", left)
	}
}

func TestAFullPoolRefusesAtOnce(t *testing.T) {
	hold := make(chan struct{})
	s := start(t, 1, 1, time.Minute, func(context.Context, reminder) error { <-hold; return nil })
	refused := 0
	for range 3 { // one runs, one waits
		resp, body := post(t, s.url, valid)
		if resp.StatusCode == http.StatusAccepted {
			continue
		}
		refused++
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if resp.StatusCode != http.StatusServiceUnavailable || err != nil || seconds < 1 {
			t.Errorf("%s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
		}
		var p struct {
			Type, Detail string
			Status       int
		}
		if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != 503 || !strings.HasSuffix(p.Detail, "queue_full") ||
			!strings.HasSuffix(p.Type, "#temporary-reduced-capacity") || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v, %s: %q", err, resp.Header.Get("Content-Type"), body)
		}
	}
	close(hold)
	if left := s.stop(); refused != 1 || left.sent != 2 || len(left.abandoned) != 0 {
		t.Errorf("%d refused, %+v", refused, left)
	}
}

func TestAStopSaysWhatWasAbandoned(t *testing.T) {
	hold, running := make(chan struct{}), make(chan struct{}, 1)
	defer close(hold)
	s := start(t, 1, 2, time.Millisecond, func(context.Context, reminder) error { running <- struct{}{}; <-hold; return nil })
	for range 3 {
		if resp, _ := post(t, s.url, valid); resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.Status)
		}
	}
	<-running
	left := s.stop()
	want := "stopped: 0 sent, 3 abandoned\n" +
		"  reminder 1 was under way and may have been sent\n  reminder 2 was never started\n  reminder 3 was never started\n"
	if got := left.String(); got != want {
		t.Errorf("%s", got)
	}
}

func TestAPanicEndsNobodyElse(t *testing.T) {
	s := start(t, 1, 4, time.Minute, func(_ context.Context, r reminder) error {
		if r.Text == "boom" {
			panic(r.Text)
		}
		return nil
	})
	post(t, s.url, `{"patient":"P1","text":"boom"}`)
	post(t, s.url, valid)
	if left := s.stop(); left.sent != 1 || len(left.abandoned) != 0 {
		t.Errorf("%+v", left)
	}
}

// pipe is a listener of one connection, in memory.
type pipe struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipe) Close() error   { close(p.done); return nil }
func (p pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A client that sent slowly once took the time that was meant for the jobs.
func TestASlowClientDoesNotTakeTheTimeOfTheJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, err := newService(1, 1, pretendToSend(3*time.Second), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := svc.accept(t.Context(), reminder{"P1", "x"}); err != nil {
			t.Fatal(err)
		}
		listener := pipe{make(chan net.Conn), make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		left := make(chan leftovers, 1)
		go func() {
			l, err := svc.serve(ctx, listener, stopping{finish: 2 * time.Second, drain: 2 * time.Second})
			if err != nil {
				t.Error(err)
			}
			left <- l
		}()
		client, conn := net.Pipe()
		listener.conns <- conn
		_, _ = io.WriteString(client, "POST /reminders HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
		synctest.Wait() // for the rest of the body
		stop()
		if l := <-left; l.sent != 1 || len(l.abandoned) > 0 {
			t.Errorf("%+v", l)
		}
		_ = client.Close()
	})
}

func TestTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, in := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"-addr", "127.0.0.1:0", "-work", "1ms"}, in, &stderr); in.Close() }()
	lines := bufio.NewScanner(out)
	lines.Scan()
	_, url, _ := strings.Cut(lines.Text(), " on ")
	url = strings.TrimSuffix(url, "/reminders")
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/reminders": 405, "/": 404} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	post(t, url, valid)
	cancel()
	lines.Scan()
	if got := lines.Text(); got != "stopped: 1 sent, 0 abandoned" {
		t.Error(got)
	}
	if got := <-code; got != 0 {
		t.Errorf("exit code %d: %s", got, &stderr)
	}
}

func TestNotReadyWhileStopping(t *testing.T) {
	svc, err := newService(0, 0, pretendToSend(0), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	svc.stopping.Store(true)
	w := httptest.NewRecorder()
	handler, err := svc.handler()
	if err != nil {
		t.Fatal(err)
	}
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
}
