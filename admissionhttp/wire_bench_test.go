//go:build unix

package admissionhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
)

// The environment variable that makes this test program a client, with the address of the server.
const wireServer = "SPILLWAY_WIRE_SERVER"

// BenchmarkOverHTTP reports the processor time of the server for one request, from the first byte
// read to the last byte written. The smallest handler of net/http is measured for comparison. With
// "dialled" in the name, each request has a connection of its own, and the time of a request
// includes accept and close. The client is another process, so its time does not count. The
// handlers take turns.
func BenchmarkOverHTTP(b *testing.B) {
	full := one(b)
	if _, err := full.Acquire(b.Context()); err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/smallest", nothing)
	mux.Handle("/smallest2", nothing)
	mux.Handle("/refused", middleware(b, admissionhttp.Config{Limiter: full})(nothing))
	mux.Handle("/admitted", admissionhttp.Protect(nothing))
	s := httptest.NewServer(mux)
	b.Cleanup(s.Close)
	for _, dialled := range []bool{false, true} {
		name := "keep-alive"
		if dialled {
			name = "dialled"
		}
		b.Run(name, func(b *testing.B) { overHTTP(b, s.Listener.Addr().String(), dialled) })
	}
}

func overHTTP(b *testing.B, addr string, dialled bool) {
	const connections, each = 16, 25
	ask := client(b, addr)
	used := map[string]time.Duration{}
	paths := []string{"smallest", "admitted", "refused", "smallest2"}
	requests := 0
	for b.Loop() {
		for _, path := range paths {
			began := processorTime(b)
			ask("/"+path, connections, each, dialled)
			used[path] += processorTime(b) - began
		}
		requests += connections * each
	}
	for _, path := range paths {
		b.ReportMetric(float64(used[path].Nanoseconds())/1e3/float64(requests), path+"-µs")
	}
	b.ReportMetric(used["refused"].Seconds()/used["smallest"].Seconds(), "refused/smallest")
	b.ReportMetric(used["smallest2"].Seconds()/used["smallest"].Seconds(), "A/A")
	b.ReportMetric(0, "ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// client starts this test program as a client of the server at addr. The returned function sends
// requests, and returns when all answers have come.
func client(b *testing.B, addr string) (ask func(path string, connections, each int, dialled bool)) {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWireClient$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), wireServer+"="+addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // the client ends
		_ = cmd.Wait()
	})
	answers := bufio.NewReader(out)
	return func(path string, connections, each int, dialled bool) {
		_, err := fmt.Fprintln(in, path, connections, each, dialled)
		line := ""
		if err == nil {
			line, err = answers.ReadString('\n')
		}
		if err != nil || line != "done\n" {
			b.Fatalf("the client said %q: %v", line, err)
		}
	}
}

// TestWireClient is the client of BenchmarkOverHTTP and tests nothing.
func TestWireClient(t *testing.T) {
	addr := os.Getenv(wireServer)
	if addr == "" {
		return
	}
	for {
		var path string
		var connections, each int
		var dialled bool
		if _, err := fmt.Scanln(&path, &connections, &each, &dialled); err != nil {
			return
		}
		var all sync.WaitGroup
		failed := make(chan error, connections)
		for range connections {
			all.Go(func() {
				if err := requests(addr, path, each, dialled); err != nil {
					failed <- err
				}
			})
		}
		all.Wait()
		select {
		case err := <-failed: // the benchmark ends
			fmt.Println(err)
		default:
			fmt.Println("done")
		}
	}
}

func requests(addr, path string, n int, dialled bool) error {
	var conn net.Conn
	var in *bufio.Reader
	closing := ""
	if dialled {
		closing = "Connection: close\r\n"
	}
	for i := range n {
		if dialled || i == 0 {
			var err error
			if conn, err = net.Dial("tcp", addr); err != nil {
				return err
			}
			in = bufio.NewReader(conn)
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, closing); err != nil {
			return err
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return err
		}
		if want := map[bool]int{true: 503, false: 200}[path == "/refused"]; answer.StatusCode != want {
			return fmt.Errorf("%s: status %d, want %d", path, answer.StatusCode, want)
		}
		if dialled || i == n-1 {
			_ = conn.Close()
		}
	}
	return nil
}
