package debugpage

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limiter"
)

// wire is a response that is read while the handler writes it.
type wire struct {
	header http.Header
	status int
	*io.PipeWriter
}

func (w *wire) Header() http.Header    { return w.header }
func (w *wire) WriteHeader(status int) { w.status = status }
func (w *wire) Flush()                 {}

// reader reads the stream of a page.
type reader struct {
	*bufio.Scanner
	leave  context.CancelFunc
	out    *wire
	closed atomic.Bool // the handler has returned
}

func read(t *testing.T, p *Page) *reader {
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{Scanner: bufio.NewScanner(in), leave: cancel, out: &wire{http.Header{}, http.StatusOK, out}}
	r.Buffer(nil, 1<<20)
	go func() {
		defer r.closed.Store(true)
		defer out.Close()
		p.ServeHTTP(r.out, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?events", nil))
	}()
	return r
}

// next returns the name and the data of the next event; "" at the end.
func (r *reader) next(t *testing.T) (event string, sections map[string]string) {
	t.Helper()
	for r.Scan() && r.Text() != "" {
		name, value, _ := strings.Cut(r.Text(), ": ")
		switch name {
		case "event":
			event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &sections); err != nil {
				t.Fatal(err)
			}
		}
	}
	return event, sections
}

func TestTheStreamSendsWhatChangesOnceInAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pictures := []picture{full("orders"), {open: true, Stats: limiter.Stats{Name: "search"}}}
		page := pageOf(&pictures)
		r := read(t, page)
		if event, all := r.next(t); event != "update" || len(all) != 6 {
			t.Fatalf("first %s with %d sections", event, len(all))
		}
		_, _ = r.next(t) // rates are known from the second look on
		began := time.Now()
		page.mu.Lock() // a look copies the pictures
		pictures[0].InFlight = 5
		page.mu.Unlock()
		event, all := r.next(t)
		if took := time.Since(began); event != "update" || took != interval {
			t.Errorf("%s after %v", event, took)
		}
		if !strings.Contains(all["limiter-1"], "<b>5</b>") {
			t.Errorf("section: %s", all["limiter-1"])
		}
		if _, sent := all["dry-run"]; sent {
			t.Error("a section is sent that did not change")
		}
		r.leave()
		synctest.Wait()
		if !r.closed.Load() || page.readers != 0 {
			t.Errorf("closed %v, %d readers after the request's end", r.closed.Load(), page.readers)
		}
	})
}

func TestManyReadersCostOneLookInAnIntervalAndNoReaderNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		page := newPage(1, func() []picture {
			looks.Add(1)
			return []picture{full("orders")}
		})
		var readers []*reader
		for range 5 {
			r := read(t, page)
			readers = append(readers, r)
			go func() {
				for r.Scan() {
				}
			}()
			time.Sleep(interval / 5)
		}
		looks.Store(0)
		time.Sleep(20 * interval)
		if n := looks.Load(); n < 18 || n > 22 {
			t.Errorf("%d looks in 20 intervals", n)
		}
		for _, r := range readers {
			r.leave()
		}
		synctest.Wait()
		looks.Store(0)
		if time.Sleep(time.Hour); looks.Load() > 0 {
			t.Errorf("%d looks without a reader", looks.Load())
		}
	})
}

func TestReadersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pictures := []picture{full("orders")}
		page := pageOf(&pictures)
		var all []*reader
		for range maxReaders {
			r := read(t, page)
			_, _ = r.next(t)
			all = append(all, r)
		}
		if w := get(page, "/?events"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one reader more: %d", w.Code)
		}
		all[0].leave()
		synctest.Wait()
		r := read(t, page)
		if event, _ := r.next(t); event != "update" {
			t.Errorf("after one left: %q, status %d", event, r.out.status)
		}
		for _, r := range append(all, r) {
			r.leave()
		}
	})
}

func TestTheStreamEndsWhenAllLimitersAreClosedAndIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newLimiter(t, limiter.Config{Name: "orders"})
		permit, err := lim.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := read(t, New(lim))
		_, _ = r.next(t)
		lim.Close()
		// While work runs, there is something to show.
		if event, all := r.next(t); event != "update" || !strings.Contains(all["limiter-1"], "The intake is closed.") {
			t.Fatalf("event %q: %s", event, all["limiter-1"])
		}
		permit.Release()
		if event, all := r.next(t); event != "update" || !strings.Contains(all["limiter-1"], "<b>0</b>") {
			t.Errorf("event %q: %s", event, all["limiter-1"])
		}
		if event, _ := r.next(t); event != "end" {
			t.Errorf("event %q after the last work", event)
		}
		synctest.Wait()
		if !r.closed.Load() {
			t.Error("the stream goes on")
		}
	})
}

func TestAStreamWhoseReaderIsGoneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pictures := []picture{full("orders")}
		page := pageOf(&pictures)
		r := read(t, page)
		_, _ = r.next(t)
		_ = r.out.CloseWithError(io.ErrClosedPipe)
		time.Sleep(2 * interval)
		synctest.Wait()
		if !r.closed.Load() || page.readers != 0 {
			t.Errorf("closed %v, %d readers", r.closed.Load(), page.readers)
		}
		r.leave()
	})
}

// An admin server has a WriteTimeout. The stream must outlive it.
func TestTheStreamOutlivesTheServersWriteTimeout(t *testing.T) {
	pictures := []picture{full("orders")}
	server := httptest.NewUnstartedServer(pageOf(&pictures))
	server.Config.WriteTimeout = time.Millisecond
	server.Start()
	defer server.Close()
	response, err := server.Client().Get(server.URL + "?events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for events := 0; events < 2; {
		if !lines.Scan() {
			t.Fatalf("the stream ends after %d events: %v", events, lines.Err())
		}
		if strings.HasPrefix(lines.Text(), "event: update") {
			events++
		}
	}
}
