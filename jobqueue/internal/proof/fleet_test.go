package proof

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/internal/await"
)

// process is a process of the fleet.
type process struct {
	task  task
	cmd   *exec.Cmd
	stdin io.Closer
	ready chan struct{} // closed when the process has reported that it is ready
	ended chan struct{} // closed once err is final
	err   error
	said  tail
}

// tail keeps the end of what a process writes to standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (s *tail) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, b...)
	s.text = s.text[max(0, len(s.text)-4<<10):]
	return len(b), nil
}

func (s *tail) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.TrimSpace(s.text))
}

// fleet holds the processes of a test.
type fleet struct {
	*testing.T
	dir     string
	site    site
	started int
	all     []*process
}

// start starts a process. The test ends it at the latest.
func (f *fleet) start(t task) *process {
	f.Helper()
	f.started++
	t.ID, t.Dir, t.Site = fmt.Sprintf("%s%d", t.Role, f.started), f.dir, f.site
	text, err := json.Marshal(t)
	if err != nil {
		f.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	p := &process{task: t, cmd: exec.Command(exe), ready: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), roleVar+"="+string(text), "GOMAXPROCS=2"), &p.said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		f.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		f.Fatal(err)
	}
	go func() {
		said := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "ready" && !said {
				said = true
				close(p.ready)
			}
		}
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	f.all = append(f.all, p)
	f.Cleanup(p.kill)
	return p
}

// kill ends a process without a warning.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// await waits until a process is ready.
func (f *fleet) await(p *process) {
	f.Helper()
	either := make(chan struct{})
	go func() {
		defer close(either)
		select {
		case <-p.ready:
		case <-p.ended:
		}
	}()
	await.Receive(f, p.task.ID+" is ready", either)
	select {
	case <-p.ready: // the process may have ended since
	default:
		f.Fatalf("%s ended before it was ready: %v", p.task.ID, p.err)
	}
}

// stop ends a process and checks that it ends without an error.
func (f *fleet) stop(p *process) {
	f.Helper()
	_ = p.stdin.Close()
	if await.Receive(f, p.task.ID+" ends", p.ended); p.err != nil {
		f.Fatalf("%s: %v", p.task.ID, p.err)
	}
}

// Fatalf ends the test, with the last output of the processes that still run or have failed.
func (f *fleet) Fatalf(format string, args ...any) {
	f.Helper()
	text := []string{fmt.Sprintf(format, args...)}
	for _, p := range f.all {
		if s := p.said.String(); s != "" {
			text = append(text, p.task.ID+" said: "+s)
		}
	}
	f.Fatal(strings.Join(text[:min(len(text), 20)], "\n"))
}

// written returns how many bytes are in the ledgers of the live processes.
func (f *fleet) written(prefix string, live []*process) (n int64) {
	for _, p := range live {
		if info, err := os.Stat(filepath.Join(f.dir, prefix+p.task.ID)); err == nil {
			n += info.Size()
		}
	}
	return n
}
