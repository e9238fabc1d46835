package contestant_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/lab/contestant"
)

// never is when a process ends that has to be killed.
var never chan struct{}

var roles = map[string]contestant.Role{
	"double": contestant.Func(func(_ context.Context, n int) (int, error) { return 2 * n, nil }),
	"fail": contestant.Func(func(context.Context, int) (int, error) {
		return 0, errors.New("the store is on fire")
	}),
	"crash": contestant.Func(func(context.Context, int) (int, error) { panic("a bug of its own") }),
	"hog": contestant.Func(func(_ context.Context, mib int) (int, error) {
		held := hold(mib)
		<-never // until it is killed, however late it is looked at
		return len(held), nil
	}),
	"exhausted": contestant.Func(func(context.Context, int) (int, error) { // like a Go program that gets no more memory
		os.Stderr.WriteString("fatal error: runtime: out of memory\n\nruntime stack:\n" + strings.Repeat("goroutine 1 [semacquire]:\n", 1000))
		os.Exit(2)
		return 0, nil
	}),
	"hang": contestant.Func(func(_ context.Context, parent string) (int, error) {
		hang(parent)
		return 0, nil
	}),
	"server": contestant.Server(func(ctx context.Context, _ any, ready contestant.Ready) (string, error) {
		if err := ready("come in"); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "served 3", nil
	}),
	"grandparent": contestant.Server(func(ctx context.Context, _ any, ready contestant.Ready) (any, error) {
		child, err := contestant.Start(context.Background(), contestant.Spec{Role: "server"}, new(string))
		if err != nil {
			return nil, err
		}
		_ = ready(child.PID())
		select {}
	}),
	"talker": contestant.Func(func(context.Context, int) (string, error) {
		_, err := os.Stdout.WriteString("{\"result\": \"forged\"}\n")
		return "mine", err
	}),
}

// hold returns memory that the system has to have.
func hold(mib int) []byte {
	held := make([]byte, mib<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	return held
}

// hang tells the test that this process runs, and ends when the test closes the connection.
func hang(parent string) {
	conn, err := net.Dial("tcp", parent)
	if err != nil {
		panic(err)
	}
	_, _ = conn.Read(make([]byte, 1))
}

// untilItHangs returns a context that ends when a process hangs, and where it tells that.
// At the end of the test the process has to have ended.
func untilItHangs(t *testing.T) (ctx context.Context, parent string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		cancel()
		_, _ = conn.Read(make([]byte, 1)) // until the process has ended
		conn.Close()
	}()
	t.Cleanup(func() {
		await.Receive(t, "the process ends", ended)
		l.Close()
	})
	return ctx, l.Addr().String()
}

func TestMain(m *testing.M) {
	playTool()
	if code, ok := contestant.Main(roles); ok {
		os.Exit(code)
	}
	// The race detector makes every process sleep a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestAResultComesBack(t *testing.T) {
	var got int
	exit, err := contestant.Run(t.Context(), contestant.Spec{Role: "double", Input: 21}, &got)
	if err != nil || got != 42 || exit.Killed != "" {
		t.Fatalf("got %d, %+v, %v", got, exit, err)
	}
	if contestant.CapEnforced && exit.PeakRSS < 1<<20 {
		t.Errorf("peak RSS %d: a Go process needs more", exit.PeakRSS)
	}
}

func TestWhatAContestantPrintsIsNoAnswer(t *testing.T) {
	var got string
	if _, err := contestant.Run(t.Context(), contestant.Spec{Role: "talker", Input: 0}, &got); err != nil || got != "mine" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestFailuresKeepTheirReason(t *testing.T) {
	for role, want := range map[string]string{
		"fail":    "the store is on fire",
		"crash":   "a bug of its own",
		"nothing": "unknown contestant",
	} {
		_, err := contestant.Run(t.Context(), contestant.Spec{Role: role, Input: 1}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", role, err, want)
		}
	}
}

func TestAboveTheMemoryCapIsAResult(t *testing.T) {
	if !contestant.CapEnforced {
		t.Skip("the memory cap needs /proc")
	}
	got := -1
	exit, err := contestant.Run(t.Context(), contestant.Spec{Role: "hog", Input: 128, MemoryCap: 96 << 20}, &got)
	if err != nil || !strings.Contains(exit.Killed, "memory cap of 96 MiB") || got != -1 {
		t.Fatalf("got %d, %q, %v", got, exit.Killed, err)
	}
	if exit.PeakRSS < 96<<20 || exit.PeakRSS > 1<<30 || len(exit.Memory) == 0 {
		t.Errorf("peak RSS %d MiB in %d looks", exit.PeakRSS>>20, len(exit.Memory))
	}
}

func TestWhatDoesNotEndInTimeIsAResult(t *testing.T) {
	if !contestant.CapEnforced {
		t.Skip("the look at a process needs /proc")
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	exit, err := contestant.Run(t.Context(), contestant.Spec{Role: "hang", Input: silent.Addr().String(), TimeCap: 1}, nil)
	if err != nil || !strings.HasPrefix(exit.Killed, contestant.Overdue) {
		t.Errorf("%q, %v", exit.Killed, err)
	}
}

func TestARuntimeThatGetsNoMoreMemoryIsAResult(t *testing.T) {
	exit, err := contestant.Run(t.Context(), contestant.Spec{Role: "exhausted", Input: 1}, nil)
	if err != nil || !strings.Contains(exit.Killed, "no more memory") {
		t.Fatalf("%q, %v", exit.Killed, err)
	}
}

func TestAServerIsReadyThenStopped(t *testing.T) {
	var ready, report string
	p, err := contestant.Start(t.Context(), contestant.Spec{Role: "server"}, &ready)
	if err != nil || ready != "come in" {
		t.Fatalf("ready %q, %v", ready, err)
	}
	if _, err := p.Stop(t.Context(), &report); err != nil || report != "served 3" {
		t.Fatalf("report %q, %v", report, err)
	}
}

func TestAServerThatFailsFirstIsAnError(t *testing.T) {
	_, err := contestant.Start(t.Context(), contestant.Spec{Role: "fail", Input: 1}, new(string))
	if err == nil || !strings.Contains(err.Error(), "on fire") {
		t.Fatalf("error %v", err)
	}
}

func TestTheEndOfTheContextEndsTheContestant(t *testing.T) {
	ctx, parent := untilItHangs(t)
	_, err := contestant.Run(ctx, contestant.Spec{Role: "hang", Input: parent}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
}

func TestNothingSurvivesAKilledParent(t *testing.T) {
	if !contestant.CapEnforced {
		t.Skip("looks at /proc")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var grandchild int
	p, err := contestant.Start(ctx, contestant.Spec{Role: "grandparent"}, &grandchild)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // kills the process group of the parent; the grandchild leads its own
	<-p.Done()
	await.True(t, "the grandchild ends as its parent did", func() bool { return gone(grandchild) })
}

// gone reports whether a process has ended; a zombie has ended.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

func TestAContestantOutlivesTheThreadsOfItsParent(t *testing.T) {
	// A goroutine that ends while locked to its thread ends the thread: before long also
	// the one that would have started the child.
	var ready, report string
	p, err := contestant.Start(t.Context(), contestant.Spec{Role: "server"}, &ready)
	if err != nil {
		t.Fatal(err)
	}
	for range 64 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
		}()
		<-done
	}
	if _, err := p.Stop(t.Context(), &report); err != nil || report != "served 3" {
		t.Fatalf("report %q, %v", report, err)
	}
}
