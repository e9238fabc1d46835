package budget

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
)

// made is five runs of each cell with these figures.
func made(t *testing.T, c Config, figures map[string]float64) (runs []results.Run) {
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Keys() {
		for repeat := range 5 {
			runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Repeat: repeat,
				Params: map[string]any{"replicas": float64(c.Replicas)}, Extra: figures})
		}
	}
	return runs
}

func TestEveryRowDecidesWhatIsPlanted(t *testing.T) {
	runs := made(t, experiment.Sized[Config](""), nil)
	for i := range runs {
		runs[i].Repeat = 0
	}
	planted.Check(t, family, runs)
}

func TestTheGoalIsAboutEightReplicas(t *testing.T) {
	figures := map[string]float64{"admissions": 2e6, "rate_share": .9, "calm_over": 0, "cut_leases": .5, "paused_leases": 0}
	for size, want := range map[string]results.Verdict{"": results.Holds, "quick": results.Inconclusive} {
		for _, c := range family.Judge(ledger.NewEvidence(made(t, experiment.Sized[Config](size), figures), 1)) {
			for _, a := range c.Answers {
				if a.Verdict != want {
					t.Errorf("%q: %s/%s %s: %s", size, c.ID, a.Part, a.Setup, a.Why)
				}
			}
		}
	}
}

func TestTheRefereeCountsWhatAllProcessesRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "referee")
	one, end, err := contestant.Share[Referee](path)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer end()
	other, end2, err := contestant.Share[Referee](path)
	if err != nil {
		t.Fatal(err)
	}
	defer end2()
	one.Begin(0)
	other.Begin(seats - 1)
	one.Finish()
	other.Begin(1)
	other.Lease(7)
	if one.most.Load() != 2 || one.running.Load() != 2 || one.admissions() != 3 || one.lease.Load() != 7 {
		t.Errorf("%d, %d, %d, %d", one.most.Load(), one.running.Load(), one.admissions(), one.lease.Load())
	}
}

func TestTheOvershootIsCountedInLeases(t *testing.T) {
	c := Config{Replicas: 8, Slots: 100}
	got := c.figures(map[string]float64{calm.Key: 90, cut.Key: 120, paused.Key: 100, "back": 150}, 5)
	if got["calm_over"] != 0 || got["cut_over"] != 20 || got["cut_leases"] != .5 || got["paused_leases"] != 0 {
		t.Errorf("%v", got)
	}
	if _, has := c.figures(map[string]float64{cut.Key: 120}, 0)["cut_leases"]; has {
		t.Error("without leases there is none")
	}
}

func TestACutProxyHoldsBackWhatItGets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	p, err := newProxy(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echo := func(text string) error {
		if _, err := c.Write([]byte(text)); err != nil {
			return err
		}
		b := make([]byte, len(text))
		_, err := io.ReadFull(c, b)
		if err == nil && string(b) != text {
			t.Errorf("%q came back as %q", text, b)
		}
		return err
	}
	if err := echo("whole"); err != nil {
		t.Fatal(err)
	}
	p.set(true)
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if err := echo("cut"); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("%v", err)
	}
	p.set(false)
	_ = c.SetReadDeadline(time.Time{})
	b := make([]byte, 3)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "cut" {
		t.Errorf("%q, %v", b, err)
	}
}
