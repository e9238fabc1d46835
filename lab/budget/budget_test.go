package budget

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

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
	synctest.Test(t, func(t *testing.T) {
		client, in := net.Pipe()
		out, server := net.Pipe()
		p := &proxy{}
		p.passes = sync.NewCond(&p.mu)
		go p.copy(out, in)
		var mu sync.Mutex
		got := ""
		go func() {
			b := make([]byte, 100)
			for {
				n, err := server.Read(b)
				if err != nil {
					return
				}
				mu.Lock()
				got += string(b[:n])
				mu.Unlock()
			}
		}()
		for _, step := range []struct {
			cut       bool
			sent, got string
		}{{false, "whole ", "whole "}, {true, "cut ", "whole "}, {false, "", "whole cut "}, {false, "again", "whole cut again"}} {
			p.set(step.cut)
			if step.sent != "" {
				if _, err := client.Write([]byte(step.sent)); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			mu.Lock()
			if got != step.got {
				t.Errorf("%+v: the other side has got %q", step, got)
			}
			mu.Unlock()
		}
		client.Close()
		synctest.Wait()
	})
}

func TestAProxyPassesOnWhatCameWhileItWasCut(t *testing.T) {
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
	for _, text := range []string{"whole", "cut"} {
		p.set(text == "cut")
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		p.set(false)
		b := make([]byte, len(text))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
}
