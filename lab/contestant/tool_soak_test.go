//go:build soak

package contestant_test

import (
	"net"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
)

// Passing means that the peak memory of a tool that runs for a second is reported.
func TestSoakThePeakMemoryOfAToolIsReported(t *testing.T) {
	if !contestant.CapEnforced {
		t.Skip("looks at /proc")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		time.Sleep(time.Second) // fifty looks at its memory
		conn.Close()
	}()
	holds := tool(t, "hold")
	holds.Env = append(holds.Env, toParent+"="+l.Addr().String())
	used, err := holds.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	soak.AtLeast(t, "peak memory of a tool", float64(used.PeakRSS)/(1<<20), 64, "MiB", "the tool holds 64 MiB for a second")
	soak.AtMost(t, "peak memory of a tool", float64(used.PeakRSS)/(1<<20), 1024, "MiB", "it holds little else")
}
