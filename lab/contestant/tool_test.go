package contestant_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
)

// asTool makes the test binary run as a tool.
const asTool = "SPILLWAY_TEST_AS_TOOL"

func playTool() {
	switch os.Getenv(asTool) {
	case "":
		return
	case "hold":
		held := make([]byte, 64<<20)
		for i := 0; i < len(held); i += 4096 {
			held[i] = 1
		}
		time.Sleep(time.Second) // of a process of its own: so that the parent looks at it, also on a busy machine
		runtime.KeepAlive(held)
		os.Exit(0)
	case "fail":
		os.Stderr.WriteString("no such load")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Minute)
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
	used, err := tool(t, "hold").Run(t.Context())
	if err != nil || used.CPU <= 0 {
		t.Fatalf("%+v, %v", used, err)
	}
	if contestant.CapEnforced && used.PeakRSS < 64<<20 {
		t.Errorf("peak RSS %d MiB: it held 64", used.PeakRSS>>20)
	}
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
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := tool(t, "hang").Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
