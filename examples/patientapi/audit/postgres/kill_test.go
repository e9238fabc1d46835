package postgres

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/postgrestest"
)

const asWriter = "AUDIT_TEST_WRITES_TO"

// TestMain writes records until it is killed, in processes that the tests start.
func TestMain(m *testing.M) {
	if url := os.Getenv(asWriter); url != "" {
		fmt.Println("failed:", writeForever(url))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForever prints the id of each record that was acknowledged.
func writeForever(url string) error {
	ctx := context.Background()
	s, err := Open(ctx, pausing(url), "")
	if err != nil {
		return err
	}
	w, err := audit.NewWriter(ctx, audit.WriterConfig{Storage: s, Timeout: time.Minute, Patience: time.Minute})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for caller := range 8 {
		go func() {
			for n := 0; ; n++ {
				e := audittest.Everything
				e.RequestID = fmt.Sprintf("%d-%d-%d", os.Getpid(), caller, n)
				if err := w.Record(ctx, e); err != nil {
					failed <- err
				}
				os.Stdout.WriteString(e.RequestID + "\n")
			}
		}()
	}
	return <-failed
}

// A process that is killed leaves a whole chain with all that it has acknowledged, also
// while another one writes.
func TestKillingLosesNoRecord(t *testing.T) {
	t.Parallel()
	killedAgainAndAgain(t, 4)
}

func killedAgainAndAgain(t *testing.T, kills int) {
	t.Helper()
	const processes = 2
	url := postgrestest.New(t, 0).URL
	var mu sync.Mutex
	var all sync.WaitGroup
	var acknowledged []string
	for range processes {
		all.Go(func() {
			for range kills / processes {
				ids := killed(t, url)
				mu.Lock()
				acknowledged = append(acknowledged, ids...)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	s := open(t, url)
	audittest.Whole(t, s, nil)
	recorded := map[string]bool{}
	for _, r := range audittest.Read(t, s) {
		recorded[r.Event.RequestID] = true
	}
	for _, id := range acknowledged {
		if !recorded[id] {
			t.Errorf("%s was acknowledged and is not on record", id)
		}
	}
	t.Logf("%d acknowledged, %d on record", len(acknowledged), len(recorded))
}

// killed lets a process write until a random number of records was acknowledged, and
// returns those.
func killed(t *testing.T, url string) (ids []string) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), asWriter+"="+url), t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	lines, enough := bufio.NewReader(out), 1+rand.N(100)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // what was not printed whole was not seen
		}
		if strings.HasPrefix(line, "failed: ") {
			t.Error(line)
		}
		if ids = append(ids, strings.TrimSpace(line)); len(ids) == enough {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // killed
	if len(ids) == 0 {
		t.Error("nothing was acknowledged")
	}
	return ids
}
