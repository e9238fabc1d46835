package route

import (
	"context"
	"errors"
	"io"
	"net/http"
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
	check(t, m.Add(
		New("GET", "/", func(context.Context, Empty) (Stream, error) { return stream, nil }),
		New("GET", "/304", func(context.Context, Empty) (Response[Stream], error) {
			return Response[Stream]{Code: 304, Body: stream}, nil
		}),
	))
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
		check(t, m.Add(New("GET", "/", func(ctx context.Context, _ Empty) (Stream, error) {
			return Stream{Write: func(w io.Writer) error { _, _ = io.WriteString(w, "part"); return c.err(ctx) }}, nil
		})))
		server := httptest.NewServer(m)
		resp := must(server.Client().Get(server.URL))
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
	check(t, m.Add(New("GET", "/", func(ctx context.Context, _ Empty) (Stream, error) {
		return Stream{Write: func(w io.Writer) error { _, _ = io.WriteString(w, "part"); <-ctx.Done(); return ctx.Err() }}, nil
	})))
	server := httptest.NewServer(m)
	resp := must(server.Client().Get(server.URL))
	_ = resp.Body.Close()
	server.Close()
	if reported > 0 {
		t.Errorf("reported %d times", reported)
	}
}

// unflushable fails every flush, as a writer does that buffers for a client that has left.
type unflushable struct {
	*httptest.ResponseRecorder
	err error
}

func (u unflushable) FlushError() error { return u.err }

// Streams went on after a flush that had failed, and a stream whose last flush had failed was
// complete.
func TestAStreamEndsWithAFlushThatFails(t *testing.T) {
	broken := errors.New("broken")
	for _, heeds := range []bool{true, false} {
		writes, outcome := 0, Outcome{}
		var failed []error
		h := answering(t, Config{Observe: func(_ *http.Request, o Outcome) { outcome = o }}, func() (Stream, error) {
			return Stream{Write: func(w io.Writer) error {
				for writes < 3 {
					writes++
					if _, err := io.WriteString(w, "part"); err != nil {
						if failed = append(failed, err); heeds {
							return nil
						}
					}
				}
				return nil
			}}, nil
		})
		w := unflushable{httptest.NewRecorder(), broken}
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler {
					t.Errorf("the answer ends with %v: the client takes the part for the whole", p)
				}
			}()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		}()
		for _, err := range failed {
			if err != broken {
				t.Errorf("a write fails with %v", err)
			}
		}
		if len(failed) != writes || heeds != (writes == 1) || w.Body.String() != "part" || outcome.Err != broken || outcome.Bytes != 4 {
			t.Errorf("%d writes, %d failed, sent %q, outcome %+v", writes, len(failed), w.Body, outcome)
		}
	}
}

// A stream that heeded its writes alone went on past the end of its context for as long as its
// client read.
func TestAStreamThatOnlyWritesEndsWithItsContext(t *testing.T) {
	for name, adapter := range map[string]bool{"of the request": false, "of an adapter": true} {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		ended := make(chan error, 1)
		h := must(New("GET", "/", func(context.Context, Empty) (Stream, error) {
			return Stream{Write: func(w io.Writer) error {
				for {
					if _, err := io.WriteString(w, "part"); err != nil {
						ended <- err
						return err
					}
				}
			}}, nil
		}).Handler(Config{}))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if adapter {
				h.(contextHandler).ServeContext(ctx, w, r, nil)
				return
			}
			h.ServeHTTP(w, r.WithContext(ctx))
		}))
		resp := must(server.Client().Get(server.URL))
		must(io.ReadFull(resp.Body, make([]byte, 100)))
		end()
		if _, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("%s: the client takes the part for the whole", name)
		}
		if err := <-ended; err != context.Canceled {
			t.Errorf("%s: a write fails with %v", name, err)
		}
		_ = resp.Body.Close()
		server.Close()
	}
}
