//go:build unix

package clusterlimit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// inReplica is the environment variable that makes the test binary a replica; it has the settings
// as JSON.
const inReplica = "CLUSTERLIMIT_TEST_REPLICA"

func TestMain(m *testing.M) {
	if text := os.Getenv(inReplica); text != "" {
		if err := replica([]byte(text), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	again = "again"
	free  = "free"
)

// settings are the parameters of a replica process.
type settings struct {
	URL        string
	FailClosed bool
}

// said is a replica's report of one try to be admitted.
type said struct {
	Admitted bool
	Cause    string // of a refusal
	Token    uint64 // of the lease, read afterwards: an older lease did not admit the request
	Slots    int
}

// replica tries once for each line that it reads. It holds each admission until a line "free" ends
// one.
func replica(text []byte, in io.Reader, out io.Writer) error {
	var set settings
	if err := json.Unmarshal(text, &set); err != nil {
		return err
	}
	m, err := joined(context.Background(), Config{URL: set.URL, Lease: time.Second, FailClosed: set.FailClosed})
	if err != nil {
		return err
	}
	defer m.Close(context.Background())
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(1000), QueueSize: -1})
	if err == nil {
		err = m.Bind(lim)
	}
	var held []limiter.Permit
	say := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); err == nil && lines.Scan(); {
		if lines.Text() == free {
			held[0].Release()
			held = held[1:]
			continue
		}
		permit, refused := lim.Acquire(context.Background())
		if refused == nil {
			held = append(held, permit)
		}
		s := m.reading()
		is := said{Admitted: refused == nil, Token: s.token, Slots: s.Slots}
		if rej, ok := errors.AsType[*spillway.Rejection](refused); ok {
			is.Cause = rej.Cause
		}
		err = say.Encode(is)
	}
	return err
}

// process is a replica in its own process.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

// newProcess starts the test binary with the settings in a variable of its environment.
func newProcess(t *testing.T, variable string, settings any) *process {
	t.Helper()
	text, err := json.Marshal(settings)
	check(t, err)
	self, err := os.Executable()
	check(t, err)
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), self)} // killed at the end, even if stopped
	p.cmd.Env = append(os.Environ(), variable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = t.Output()
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	check(t, err)
	t.Cleanup(func() {
		p.in.Close()
		_ = p.cmd.Wait()
	})
	p.answers = json.NewDecoder(out)
	return p
}

func (p *process) ask(n int) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Repeat(again+"\n", n)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) free() {
	p.t.Helper()
	if _, err := io.WriteString(p.in, free+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) answer() (s said) {
	p.t.Helper()
	if err := p.answers.Decode(&s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// A replica is stopped while a part of its lease is in use, until another replica has taken the
// lease. After the replica wakes, its first admission comes before it can know of the loss.
func TestAReplicaThatWasPausedAdmitsNothingOnItsOldLease(t *testing.T) {
	t.Parallel()
	const total, burst = 10, 500
	for name, failClosed := range map[string]bool{"keep": false, "fail closed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := engine(t)
			other := join(t, Config{URL: url, Concurrency: total})
			lim := bound(t, other)
			paused := newProcess(t, inReplica, settings{url, failClosed})
			held, ran, lease := []limiter.Permit{}, 0, 0 // ran and lease: of the other replica and of the paused replica
			var last said
			await.True(t, "the paused one has slots", func() bool {
				paused.ask(1)
				if last = paused.answer(); last.Admitted {
					ran++
				}
				return last.Slots > 1
			})
			await.True(t, "both use all that they have", func() bool {
				permit, err := lim.Acquire(t.Context())
				if err == nil {
					held = append(held, permit)
				}
				paused.ask(1)
				if last = paused.answer(); last.Admitted {
					ran++
				}
				lease = max(lease, last.Slots)
				return err != nil && !last.Admitted && ran > 1 && ran+len(held) >= total
			})
			for range ran / 2 { // so the paused replica would have room on its old lease
				paused.free()
			}
			paused.ask(1)
			last = paused.answer()
			token := last.Token
			if last.Admitted {
				paused.free()
			}
			paused.signal(syscall.SIGSTOP)
			await.True(t, "the other one has taken all", func() bool {
				if permit, err := lim.Acquire(t.Context()); err == nil {
					held = append(held, permit)
				}
				return len(held) == total
			})
			before, kept := 0, leases(other) // a machine that stalls again may free the other replica's lease
			paused.ask(burst)                // the replica finds the requests when it wakes
			paused.signal(syscall.SIGCONT)
			for i := range burst {
				if s := paused.answer(); s.Admitted && s.Token != token && !kept() {
					paused.free()
				} else if s.Admitted {
					t.Fatalf("try %d: admitted with token %d, it had %d before the pause", i, s.Token, token)
				} else if !strings.HasPrefix(s.Cause, "lease of default") {
					t.Fatalf("try %d: refused for %q", i, s.Cause)
				} else if s.Token == token {
					before++
				}
			}
			t.Logf("%d of %d tries came before it had a new lease", before, burst)
			if ran -= ran / 2; ran > lease || lease > total {
				t.Errorf("%d ran beyond the total, and the lease was %d", ran, lease)
			}
			for _, permit := range held {
				permit.Release()
			}
			await.True(t, "it has a new lease", func() bool {
				paused.ask(1)
				last = paused.answer()
				return last.Admitted
			})
			if last.Token <= token {
				t.Errorf("admitted with token %d, it had %d before the pause", last.Token, token)
			}
		})
	}
}
