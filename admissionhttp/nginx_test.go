package admissionhttp_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Behind a real proxy, a refusal by the middleware must reach the client unchanged. The proxy must
// not try the request again elsewhere, and must not take the instance out of its rotation.

// program returns the path of nginx. Without nginx the test is skipped, or fails if
// SPILLWAY_REQUIRE names nginx.
func program(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // Debian's folder may not be on PATH
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if slices.Contains(strings.Split(os.Getenv("SPILLWAY_REQUIRE"), ","), "nginx") {
		t.Fatal("SPILLWAY_REQUIRE wants nginx, and there is none: run bash scripts/ensure-nginx.sh")
	}
	t.Skip("no nginx: run bash scripts/ensure-nginx.sh")
	return ""
}

// instance is a replica of the service, which can be made to refuse everything.
type instance struct {
	*httptest.Server
	lim    *limiter.Limiter
	permit limiter.Permit
	hits   atomic.Int64 // requests that reached the instance, refused or not
	forged atomic.Int64 // requests with a priority from outside
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1}))
	protect := must(admissionhttp.New(admissionhttp.Config{Limiter: lim}))
	i := &instance{lim: lim}
	served := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }))
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.hits.Add(1)
		if r.Header.Get(admissionhttp.HeaderPriority) != "" {
			i.forged.Add(1)
		}
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

// shed takes the only slot of the instance, which then refuses everything.
func (i *instance) shed(t *testing.T) {
	t.Helper()
	var err error
	if i.permit, err = i.lim.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// startNginx starts nginx in front of the instances and returns its URL. The test ends nginx.
//
// nginx inherits a listening socket, as in an upgrade of a running nginx. So no other process can
// take the port, and requests may come at once.
func startNginx(t *testing.T, settings, ofServer string, instances ...*instance) string {
	t.Helper()
	path, dir := program(t), t.TempDir()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	socket := must(listener.(*net.TCPListener).File())
	defer socket.Close()
	address := listener.Addr().String()
	servers := ""
	for _, i := range instances {
		servers += "server " + i.Listener.Addr().String() + ofServer + ";\n"
	}
	config := must(os.ReadFile("testdata/nginx.conf"))
	text := strings.NewReplacer("@DIR@", dir, "@LISTEN@", address, "@SERVERS@", servers, "@SETTINGS@", settings).Replace(string(config))
	file := filepath.Join(dir, "nginx.conf")
	check(t, os.WriteFile(file, []byte(text), 0o600))
	cmd := exec.Command(path, "-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log"))
	cmd.Env = append(os.Environ(), "NGINX=3;") // the inherited socket
	cmd.ExtraFiles = []*os.File{socket}
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	check(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // nginx ends its worker, then itself
		defer func() {
			_ = cmd.Process.Kill() // if nginx did not end
			<-ended
			if t.Failed() {
				log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
				t.Logf("nginx: %s; %s%s", cmd.ProcessState, output.String(), log)
			}
		}()
		await.Receive(t, "nginx ends", ended)
	})
	return "http://" + address
}

// settings returns the recommended settings of nginx in front of a service.
func settings(t *testing.T) string {
	t.Helper()
	text := must(os.ReadFile("testdata/settings.conf"))
	return string(text)
}

// askNginx sends a request as an outsider would, with a priority that it made up.
func askNginx(t *testing.T, method, url string) *http.Response {
	t.Helper()
	req := must(http.NewRequestWithContext(await.Context(t, "nginx answers"), method, url, strings.NewReader("a body")))
	req.Header.Set(admissionhttp.HeaderPriority, "critical")
	resp := must(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return resp
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut}

const rounds = 8 // requests of each method; the two instances take turns

func TestARefusalPassesThroughNginxAndIsNotTriedElsewhere(t *testing.T) {
	busy, idle := newInstance(t), newInstance(t)
	busy.shed(t)
	url := startNginx(t, settings(t), "", busy, idle)
	refused := 0
	for range rounds {
		for _, method := range methods {
			resp := askNginx(t, method, url)
			if resp.StatusCode == http.StatusOK {
				continue
			}
			refused++
			after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if resp.StatusCode != http.StatusServiceUnavailable || err != nil || after < 1 ||
				resp.Header.Get(admissionhttp.HeaderReason) != "queue_full" || resp.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %s, %v", method, resp.Status, resp.Header)
			}
		}
	}
	sent := rounds * len(methods)
	if got := int(busy.hits.Load()); got != refused || got < sent/2-2 {
		t.Errorf("%d of %d requests came to the instance that refuses, and %d refusals to the client", got, sent, refused)
	}
	if got := int(idle.hits.Load()); got != sent-refused {
		t.Errorf("%d requests came to the other instance, want %d", got, sent-refused)
	}
	if n := busy.forged.Load() + idle.forged.Load(); n > 0 {
		t.Errorf("%d requests came with a priority from outside", n)
	}

	// An instance that has room again gets its share at once.
	busy.permit.Release()
	before := busy.hits.Load()
	for range 4 {
		if resp := askNginx(t, http.MethodGet, url); resp.StatusCode != http.StatusOK {
			t.Errorf("%s after the instance had room again", resp.Status)
		}
	}
	if busy.hits.Load() == before {
		t.Error("the instance is out of the rotation")
	}
}

// The opposite settings cause what the recommended settings prevent. So the test above would detect
// it.
func TestWhatTheSettingsPrevent(t *testing.T) {
	busy, idle := newInstance(t), newInstance(t)
	busy.shed(t)
	url := startNginx(t, "proxy_next_upstream error timeout http_503 non_idempotent;", " max_fails=1 fail_timeout=1h", busy, idle)
	const sent = 10
	for range sent {
		if resp := askNginx(t, http.MethodPost, url); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: want it to be sent to the other instance", resp.Status)
		}
	}
	if busy.hits.Load() != 1 || idle.hits.Load() != sent {
		t.Errorf("%d and %d requests: want the first one twice, and the instance that refused it left out then", busy.hits.Load(), idle.hits.Load())
	}
}

// When every server has refused, nginx treats all of them as broken. It then answers 502 without
// Retry-After.
func TestWhatTheSettingsPreventWhenAllShed(t *testing.T) {
	one, other := newInstance(t), newInstance(t)
	one.shed(t)
	other.shed(t)
	url := startNginx(t, "proxy_next_upstream error timeout http_503;", "", one, other)
	if first := askNginx(t, http.MethodGet, url); first.StatusCode != http.StatusServiceUnavailable || one.hits.Load()+other.hits.Load() != 2 {
		t.Errorf("%s after %d requests: want both tried", first.Status, one.hits.Load()+other.hits.Load())
	}
	if second := askNginx(t, http.MethodGet, url); second.StatusCode != http.StatusBadGateway || second.Header.Get("Retry-After") != "" {
		t.Errorf("%s, %v", second.Status, second.Header)
	}
}
