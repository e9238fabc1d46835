package route

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/limiter"
)

// waiting is a server of an endless stream and of a long poll. begun receives a value when the
// handler of the poll waits.
func waiting(t *testing.T, stop context.Context, lim *limiter.Limiter, cfg Config) (server *httptest.Server, begun chan struct{}) {
	t.Helper()
	begun = make(chan struct{}, 1)
	m := NewMux(cfg)
	check(t, m.Add(
		New("GET", "/events", func(ctx context.Context, _ Empty) (Stream, error) {
			return Stream{Write: func(w io.Writer) error {
				_, err := io.WriteString(w, "part")
				<-ctx.Done()
				return err
			}}, nil
		}).Until(stop).Limiter(lim),
		New("GET", "/poll", func(ctx context.Context, _ Empty) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return "", fmt.Errorf("poll: %w", ctx.Err())
		}).Until(stop).Limiter(lim),
		New("GET", "/cause", func(ctx context.Context, _ Empty) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return "", context.Cause(ctx)
		}).Until(stop).Limiter(lim),
		New("GET", "/short", func(ctx context.Context, _ Empty) (string, error) {
			begun <- struct{}{}
			<-stop.Done()
			return "whole", ctx.Err()
		}).Limiter(lim),
	))
	server = httptest.NewServer(m)
	t.Cleanup(server.Close)
	return server, begun
}

// fetched gets a path in the background, and sends the whole answer.
func fetched(server *httptest.Server, path string) chan string {
	answer := make(chan string, 1)
	go func() {
		resp, err := server.Client().Get(server.URL + path)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK {
			body = fmt.Appendf(nil, "retry after %s, close: %v", resp.Header.Get("Retry-After"), resp.Close)
		}
		answer <- fmt.Sprintf("%d %s %v", resp.StatusCode, body, err)
	}()
	return answer
}

// Drain and Shutdown wait for streams and long polls, which once had no end but their clients'.
func TestStopEndsEndlessRequestsAndDrainAndShutdownReturn(t *testing.T) {
	lim := must(limiter.New(limiter.Config{}))
	stop, stopNow := context.WithCancel(t.Context())
	defer stopNow()
	reported := make(chan error, 9)
	server, begun := waiting(t, stop, lim, Config{Report: func(_ context.Context, _ string, err error) { reported <- err }})
	events := must(server.Client().Get(server.URL + "/events"))
	defer events.Body.Close()
	must(io.ReadFull(events.Body, make([]byte, len("part"))))
	answers := map[string]chan string{}
	for _, path := range []string{"/poll", "/cause", "/short"} {
		answers[path] = fetched(server, path)
		<-begun
	}

	server.Config.RegisterOnShutdown(stopNow)
	check(t, server.Config.Shutdown(t.Context()))
	if err := lim.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(events.Body); len(rest) > 0 || err != nil {
		t.Errorf("the stream goes on with %q, %v", rest, err)
	}
	refused := "503 retry after 1, close: true <nil>"
	for path, want := range map[string]string{"/poll": refused, "/cause": refused, "/short": `200 "whole" <nil>`} {
		if got := <-answers[path]; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	select {
	case err := <-reported:
		t.Errorf("reported: %v", err)
	default:
	}
}

func TestAnEndlessRouteThatHasStoppedRefuses(t *testing.T) {
	stop, stopNow := context.WithCancel(t.Context())
	stopNow()
	server, _ := waiting(t, stop, nil, Config{})
	for _, path := range []string{"/events", "/poll"} {
		if got, want := <-fetched(server, path), "503 retry after 1, close: true <nil>"; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got, want := <-fetched(server, "/short"), `200 "whole" <nil>`; got != want {
		t.Errorf("/short: %s, want %s", got, want)
	}
}

// A client that leaves has left, also if the route stops a little later.
func TestStopIsNotTheCauseOfAnEarlierEnd(t *testing.T) {
	stop, stopNow := context.WithCancel(t.Context())
	defer stopNow()
	gone, leave := context.WithCancel(t.Context())
	h := must(New("GET", "/", func(ctx context.Context, _ Empty) (string, error) {
		leave()
		<-ctx.Done()
		stopNow()
		return "", ctx.Err()
	}).Until(stop).Handler(Config{}))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequestWithContext(gone, "GET", "/", nil)); w.Code != statusClientLeft {
		t.Errorf("%d for a client that has left", w.Code)
	}
}
