package route

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"testing"
	"time"
)

// net/http drops the body of an answer to HEAD. A stream that ends when its client leaves would
// continue without a reader.
func TestAStreamIsNotRunForAnAnswerWithoutContent(t *testing.T) {
	runs := 0
	stream := Stream{ContentType: "text/event-stream", Write: func(w io.Writer) error { runs++; return nil }}
	m := NewMux(Config{})
	if err := m.Add(
		New("GET", "/", func(context.Context, Empty) (Stream, error) { return stream, nil }),
		New("GET", "/304", func(context.Context, Empty) (Response[Stream], error) {
			return Response[Stream]{Code: 304, Body: stream}, nil
		}),
	); err != nil {
		t.Fatal(err)
	}
	if w := do(m, "HEAD", "/", "", ""); w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" || runs > 0 {
		t.Errorf("HEAD: %d %v, written %d times", w.Code, w.Header(), runs)
	}
	if w := do(m, "GET", "/304", "", ""); w.Code != 304 || runs > 0 {
		t.Errorf("304: %d, written %d times", w.Code, runs)
	}
	if do(m, "GET", "/", "", ""); runs != 1 {
		t.Errorf("GET: written %d times", runs)
	}
}

// After the first write it is too late to send the client a problem, so only Report receives the
// error.
func TestAnErrorOfAStreamThatHasBegunIsReported(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		err  func(ctx context.Context) error
		want error
	}{
		{"of its own", func(context.Context) error { return broken }, broken},
		{"that a rule maps", func(context.Context) error { return &Problem{Status: 404} }, &Problem{Status: 404}},
		{"out of time", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, context.DeadlineExceeded},
	} {
		reports := make(chan error, 1)
		m := NewMux(Config{Limits: Limits{Handle: 10 * time.Millisecond}, Report: func(_ context.Context, pattern string, err error) {
			if pattern == "GET /" {
				reports <- err
			}
		}})
		if err := m.Add(New("GET", "/", func(ctx context.Context, _ Empty) (Stream, error) {
			return Stream{Write: func(w io.Writer) error { _, _ = io.WriteString(w, "part"); return c.err(ctx) }}, nil
		})); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(m)
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: the client takes %q for the whole", c.name, body)
		}
		_ = resp.Body.Close()
		server.Close() // the handler has returned
		select {
		case err := <-reports:
			if err.Error() != c.want.Error() {
				t.Errorf("%s: reported %v", c.name, err)
			}
		default:
			t.Errorf("%s: not reported", c.name)
		}
	}
}

func TestAStreamThatEndsWithItsClientIsNotReported(t *testing.T) {
	reported := 0
	m := NewMux(Config{Report: func(context.Context, string, error) { reported++ }})
	if err := m.Add(New("GET", "/", func(ctx context.Context, _ Empty) (Stream, error) {
		return Stream{Write: func(w io.Writer) error { _, _ = io.WriteString(w, "part"); <-ctx.Done(); return ctx.Err() }}, nil
	})); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(m)
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	server.Close()
	if reported > 0 {
		t.Errorf("reported %d times", reported)
	}
}
