package overload

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
)

func TestAnAnswerAfterTheDeadlineIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			takes     time.Duration
			says, got loadgen.Outcome
		}{
			{time.Second - 1, loadgen.OK, loadgen.OK},
			{time.Second, loadgen.OK, loadgen.Timeout},
			{time.Second, loadgen.Rejected, loadgen.Rejected},
			{time.Millisecond, loadgen.Error, loadgen.Error},
		} {
			target := loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome { time.Sleep(c.takes); return c.says })
			if got := inTime(target, time.Second).Do(t.Context(), 0); got != c.got {
				t.Errorf("%v after %v is %v, want %v", c.says, c.takes, got, c.got)
			}
		}
	})
}

func TestTheCapacityIsTheBestAndTheFirstThatIsNearlyAsGood(t *testing.T) {
	goodput := map[int]uint64{1: 50, 2: 94, 4: 96, 8: 100, 16: 80}
	load := func(n int) (*loadgen.Result, error) {
		res := &loadgen.Result{Elapsed: time.Second}
		res.Outcomes[loadgen.OK].Count = goodput[n]
		return res, nil
	}
	if best, enough, err := most([]int{1, 2, 4, 8, 16}, load); err != nil || best.Goodput() != 100 || enough != 4 {
		t.Errorf("%v with %d clients, %v", best, enough, err)
	}
	clear(goodput)
	if _, _, err := most([]int{1, 2}, load); err == nil {
		t.Error("nothing was answered, and that is no error")
	}
	broken := errors.New("refused")
	if _, _, err := most([]int{1}, func(int) (*loadgen.Result, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestInTurnEveryKindHasItsPart(t *testing.T) {
	for _, kinds := range [][]kind{lookups, lengths} {
		var parts []loadgen.Part
		seen, length := map[string]int{}, 0
		for _, k := range kinds {
			length += k.parts
			parts = append(parts, loadgen.Part{Weight: float64(k.parts), Target: loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome {
				seen[k.name]++
				return loadgen.OK
			})})
		}
		for n := range uint64(3 * length) {
			rounds(parts).Do(t.Context(), n)
		}
		for _, k := range kinds {
			if seen[k.name] != 3*k.parts {
				t.Errorf("%d of %s in three rounds, want %d", seen[k.name], k.name, 3*k.parts)
			}
		}
	}
}

func TestEveryClientSendsEachPriority(t *testing.T) {
	for client := range uint64(clientCount) {
		seen := map[spillway.Priority]int{}
		for i := range uint64(5) {
			seen[priorityOf(i*clientCount+client)]++
		}
		if seen[spillway.Critical] != 1 || seen[spillway.Low] != 1 || seen[spillway.Normal] != 3 {
			t.Fatalf("client %d: %v", client, seen)
		}
	}
}

// counted is a crowd of which so many of ten requests of each step were answered well.
func counted(good ...int) *crowd {
	c := &crowd{}
	for i, n := range good {
		for k := range 10 {
			r := request{sent: time.Duration(i) * service.Step, outcome: loadgen.Timeout}
			if k < n {
				r.outcome = loadgen.OK
			}
			c.sent = append(c.sent, r)
		}
	}
	return c
}

func TestAShareIsOfTheRequestsSentInThatTime(t *testing.T) {
	c := counted(10, 5, 0, 10)
	for _, test := range []struct {
		from, to time.Duration
		want     float64
	}{{0, 1, 100}, {1, 2, 50}, {0, 3, 50}, {1, 9, 50}} {
		if got := c.share(test.from*service.Step, test.to*service.Step, request.good); got != test.want {
			t.Errorf("from %v to %v: %v, want %v", test.from, test.to, got, test.want)
		}
	}
	if got := c.share(4*service.Step, 5*service.Step, request.good); !math.IsNaN(got) {
		t.Errorf("of none it is %v", got)
	}
}

func TestRecoveredIsFromWhereASecondIsGood(t *testing.T) {
	good := make([]int, 30)
	good[3] = 10 // a moment is not enough
	for i := 15; i < len(good); i++ {
		good[i] = 10
	}
	if at, ever := counted(good...).recovered(90, 3*time.Second); !ever || at != 1500*time.Millisecond { // step 14, and nine good ones
		t.Errorf("%v, %v", at, ever)
	}
	for i := 20; i < len(good); i++ {
		good[i] = 5
	}
	if at, ever := counted(good...).recovered(90, 3*time.Second); ever || at != 3*time.Second {
		t.Errorf("%v, %v", at, ever)
	}
}

// inProcess is a service without a network, in whose place time may be virtual.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// tell tells a story in virtual time, and returns its figures.
func tell(t *testing.T, name, contestant string, pace float64) (figures map[string]float64) {
	synctest.Test(t, func(t *testing.T) {
		s := story(name)
		of := &trial{session: &session{Config: Config{Pace: pace}}, scene: s, job: Job{Contestant: contestant, Work: usual, Seed: 1, Pace: pace}}
		f := new(Front)
		handler, err := s.handler(t.Context(), of.job, f)
		if err != nil {
			t.Fatal(err)
		}
		load := service.Load{Seed: 1}
		load.Stretches, load.Measured = s.stretches(pace, usual.Capacity())
		if of.crowd, err = newCrowd(s.manners(of), "http://service", inProcess{handler}); err != nil {
			t.Fatal(err)
		}
		if _, err := load.SendTo(t.Context(), of.crowd.targets(load)); err != nil {
			t.Fatal(err)
		}
		figures = s.figures(of)
		for _, end := range f.ends {
			end()
		}
	})
	t.Log(name, contestant, figures)
	return figures
}

func TestRetriesKeepAPlainServiceDown(t *testing.T) {
	plain, ours := tell(t, "metastable", unprotected, .5), tell(t, "metastable", protected, 1)
	if plain["before"] < 95 || plain["after"] >= 20 {
		t.Errorf("unprotected: %v", plain)
	}
	if ours["before"] < 95 || ours["settled"] <= 95 {
		t.Errorf("protected: %v", ours)
	}
}

func TestAColdCacheKeepsAPlainServiceDown(t *testing.T) {
	plain, ours := tell(t, "herd", unprotected, 1), tell(t, "herd", protected, 1)
	if plain["never"] != 1 {
		t.Errorf("unprotected: %v", plain)
	}
	if ours["never"] != 0 || ours["recovery_s"] > plain["recovery_s"]/2 {
		t.Errorf("protected: %v", ours)
	}
}

func TestASlowQueryTakesTheConnectionsOfAPlainService(t *testing.T) {
	plain, ours := tell(t, "query", unprotected, .2), tell(t, "query", protected, .2)
	if plain["critical"] > 80 {
		t.Errorf("unprotected: %v", plain)
	}
	if ours["critical"] < 99 {
		t.Errorf("protected: %v", ours)
	}
}
