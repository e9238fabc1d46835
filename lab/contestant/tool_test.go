package contestant_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
)

// asTool makes the test binary run as a tool.
const asTool = "SPILLWAY_TEST_AS_TOOL"

// toParent is where a tool tells the test that it runs.
const toParent = "SPILLWAY_TEST_PARENT"

func playTool() {
	switch os.Getenv(asTool) {
	case "":
		return
	case "compute":
		hold(64)
		os.Exit(0)
	case "hold":
		held := hold(64)
		hang(os.Getenv(toParent))
		runtime.KeepAlive(held)
		os.Exit(0)
	case "fail":
		os.Stderr.WriteString("no such load")
		os.Exit(3)
	case "hang":
		hang(os.Getenv(toParent))
	}
}

func tool(t *testing.T, does string) contestant.Tool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return contestant.Tool{Path: self, Env: append(os.Environ(), asTool+"="+does), Stdin: "x"}
}

func TestAToolIsMeasured(t *testing.T) {
	if used, err := tool(t, "compute").Run(t.Context()); err != nil || used.CPU <= 0 {
		t.Fatalf("%+v, %v", used, err)
	}
}

func TestThePeakOfAProcessIsTheMostThatWasSeen(t *testing.T) {
	if !contestant.CapEnforced {
		t.Skip("looks at /proc")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	holds := tool(t, "hold")
	cmd := exec.CommandContext(t.Context(), holds.Path)
	cmd.Env = append(holds.Env, toParent+"="+l.Addr().String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held, err := l.Accept() // from now on it holds 64 MiB
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ended, peak := make(chan struct{}), make(chan uint64)
		go func() { peak <- contestant.PeakUntil(ended, cmd.Process.Pid) }()
		time.Sleep(3 * contestant.WatchEvery)
		held.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * contestant.WatchEvery) // it has ended, and its memory is unknown
		close(ended)
		if got := <-peak; got < 64<<20 || got > 1<<30 {
			t.Errorf("peak RSS %d MiB: it held 64", got>>20)
		}
	})
}

func TestAToolThatFailsSaysWhy(t *testing.T) {
	if _, err := tool(t, "fail").Run(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such load") {
		t.Errorf("%v", err)
	}
	if _, err := (contestant.Tool{Path: "/there/is/none"}).Run(t.Context()); err == nil {
		t.Error("a tool that there is not ran")
	}
}

func TestTheEndOfTheContextEndsATool(t *testing.T) {
	ctx, parent := untilItHangs(t)
	hangs := tool(t, "hang")
	hangs.Env = append(hangs.Env, toParent+"="+parent)
	if _, err := hangs.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
