package main

import (
	"context"
	"net"
	"testing"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ladder"
)

func TestMain(m *testing.M) { labtest.Main(m, roles()) }

// serving serves on a loopback port until the test ends.
func serving(t testing.TB, j ladder.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, j, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestEveryServerAnswersRight(t *testing.T) {
	all := []ladder.Server{{Kind: ladder.Raw}, {Kind: ladder.NetHTTP}, {Kind: ladder.NetHTTPPooled}}
	for save := range ladder.AllRungs + 1 {
		all = append(all, ladder.Server{Save: save}, ladder.Server{Kind: ladder.FastHTTP, Save: save})
	}
	for _, j := range all {
		t.Run(j.Kind+": "+j.Save.String(), func(t *testing.T) {
			for _, perConn := range []int{0, 3} {
				c := client{addr: serving(t, j), conns: 3, perConn: perConn}
				lines, err := c.open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := c.send(t.Context(), lines, 40); err != nil {
					t.Error(err)
				}
				closeAll(lines)
			}
		})
	}
}

func TestASessionFillsEveryCell(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some eighty processes")
	}
	exp := ladder.Experiment{Config: ladder.Config{Conns: 2, Requests: 20, Rounds: 1}}
	res, runs, err := experiment.Session{Dir: t.TempDir(), Repeats: 1, Seed: 1}.Run(t.Context(), exp)
	if err != nil || res.Partial != "" {
		t.Fatalf("%v, %q", err, res.Partial)
	}
	for _, r := range runs {
		if r.Killed != "" || r.Elapsed <= 0 || !(r.Extra["cpu_us"] > 0) {
			t.Errorf("%s, %s: %+v", r.Setup, r.Pattern, r)
		}
	}
}

func TestAMeasurementThatIsStoppedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := ladder.ClientJob{Servers: []ladder.Where{{Addr: serving(t, ladder.Server{})}}, Conns: 1, Requests: 1, Rounds: 1}
	if _, err := runClient(ctx, j); err == nil {
		t.Error("no error")
	}
}
