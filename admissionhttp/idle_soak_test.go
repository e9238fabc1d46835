//go:build soak

package admissionhttp

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limiter"
)

const (
	asService = "SPILLWAY_TEST_COMPUTES" // rounds of computing for a request: the process is the service
	idlers    = 1500
)

// rounds computes.
func rounds(n int) {
	var b [1024]byte
	for range n {
		h := sha256.Sum256(b[:])
		b[0] = h[0]
	}
}

// computes is a service that computes for /, streams nothing for /stream and sleeps for /sleep. It has slots for all.
func computes(n int) {
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		panic(err)
	}
	if err := lim.SetBounds(2*idlers, 0); err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { rounds(n); _, _ = io.WriteString(w, "done\n") })
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/sleep", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	protect, err := New(Config{Limiter: lim, Long: func(r *http.Request) bool { return r.URL.Path == "/stream" }})
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	panic(http.Serve(listener, protect(mux)))
}

// goodput starts a service with one processor, holds so many requests for path, asks for twice what the service can do
// for six seconds, with a deadline of a second, and returns the answers of the last four for each second of its
// processor: neighbours take their part of the processor.
func goodput(t *testing.T, each time.Duration, work, held int, path string) float64 {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	service := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSoakIdleRequestsDoNotHideThatProcessorsAreShort$")
	service.Env = append(os.Environ(), "GOMAXPROCS=1", asService+"="+strconv.Itoa(work))
	out, err := service.StdoutPipe()
	if err == nil {
		err = service.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer service.Wait()
	defer end()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(address)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * idlers}}
	ask := func(ctx context.Context, path string) bool {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		answer, err := client.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err == nil && answer.StatusCode == http.StatusOK
	}
	for range held {
		go ask(ctx, path)
		time.Sleep(time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	var good atomic.Int64
	var callers sync.WaitGroup
	used, began := time.Duration(0), time.Now()
	for at := time.Duration(0); at < 6*time.Second; at += each / 2 {
		time.Sleep(time.Until(began.Add(at)))
		counts := at >= 2*time.Second
		if counts && used == 0 {
			used = processorTime(t, service.Process.Pid)
		}
		callers.Go(func() {
			ctx, cancel := context.WithDeadline(ctx, began.Add(at+time.Second))
			defer cancel()
			if ask(ctx, "/") && counts {
				good.Add(1)
			}
		})
	}
	used = processorTime(t, service.Process.Pid) - used
	callers.Wait()
	return float64(good.Load()) / used.Seconds()
}

// processorTime is how much processor time a process has used.
func processorTime(t *testing.T, pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip("no processor time of a process: ", err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	var ticks int
	for _, field := range strings.Fields(after)[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// Beside 1,500 requests that only wait, a service at twice its capacity answers as many others in time as without them.
func TestSoakIdleRequestsDoNotHideThatProcessorsAreShort(t *testing.T) {
	if n, err := strconv.Atoi(os.Getenv(asService)); err == nil {
		computes(n)
	}
	const each = 5 * time.Millisecond
	quickest := time.Hour
	for range 10 {
		began := time.Now()
		rounds(1000)
		quickest = min(quickest, time.Since(began))
	}
	work := int(1000 * each / quickest)
	for _, path := range []string{"/stream", "/sleep"} {
		var with, without float64
		for range 2 {
			without += goodput(t, each, work, 0, path)
			with += goodput(t, each, work, idlers, path)
		}
		t.Logf("beside %s: %.0f good answers for each second of processor, %.0f without", path, with/2, without/2)
		soak.AtLeast(t, "good answers beside 1,500 requests for "+path+", of those without", with/without, 0.9, "", "they need no processor; a tenth is for what else the machine does")
	}
}
