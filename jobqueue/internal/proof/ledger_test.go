package proof

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ledger is a file to which a process appends records that must survive its end.
type ledger struct {
	mu   sync.Mutex
	file *os.File
	sync bool
}

func openLedger(path string, sync bool) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &ledger{file: f, sync: sync}, err
}

// add returns once the line is in the file.
func (l *ledger) add(words ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.WriteString(strings.Join(words, " ") + "\n"); err != nil || !l.sync {
		return err
	}
	return l.file.Sync()
}

// read returns the lines of all ledgers with the prefix. A kill may have cut off the last
// line of a file, which then does not count.
func readLedgers(dir, prefix string) (lines []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(data) {
			if text, whole := strings.CutSuffix(string(line), "\n"); whole {
				lines = append(lines, text)
			}
		}
	}
	return lines, nil
}

// The prefix of a key decides the fate of its job.
const (
	fine   = "fine."   // done
	barren = "barren." // every attempt fails
	cursed = "cursed." // a dead letter at once
	fatal  = "fatal."  // the handler ends its process
)

func planted(key string) bool {
	return strings.HasPrefix(key, barren) || strings.HasPrefix(key, cursed)
}

// account is the result of a trial.
type account struct {
	acknowledged, done int      // keys
	duplicates         int      // times that a job was done beyond the first
	dead               int      // dead letters
	lost               []string // keys of acknowledged jobs that were neither done nor buried as planted
	wrong              []string // all other faults
}

// settle compares the keys of acknowledged jobs, of done jobs and of dead letters.
func settle(acknowledged, done, dead []string) account {
	times, letters := map[string]int{}, map[string]int{}
	a := account{acknowledged: len(acknowledged), dead: len(dead)}
	for _, key := range done {
		times[key]++
		if planted(key) {
			a.wrong = append(a.wrong, "done, and must not be: "+key)
		}
	}
	for _, n := range times {
		a.duplicates += n - 1
	}
	a.done = len(times)
	for _, key := range dead {
		letters[key]++
		if !planted(key) {
			a.wrong = append(a.wrong, "a dead letter that was not planted: "+key)
		}
		if letters[key] == 2 {
			a.wrong = append(a.wrong, "a dead letter twice: "+key)
		}
	}
	for _, key := range acknowledged {
		if planted(key) && letters[key] == 0 || !planted(key) && times[key] == 0 {
			a.lost = append(a.lost, key)
		}
	}
	return a
}

// verdict returns the faults of an account. The number of kills and of jobs in flight bound the
// duplicates.
func (a account) verdict(kills, inFlight int) (faults []string) {
	if len(a.lost) > 0 {
		faults = append(faults, fmt.Sprintf("%d acknowledged jobs are lost: %.10q", len(a.lost), a.lost))
	}
	if a.duplicates > kills*inFlight {
		faults = append(faults, fmt.Sprintf("%d jobs were done again, after %d kills with %d in flight", a.duplicates, kills, inFlight))
	}
	for i, w := range a.wrong {
		if i == 10 {
			break
		}
		faults = append(faults, w)
	}
	return faults
}

func (a account) String() string {
	return fmt.Sprintf("%d jobs acknowledged, %d done, %d of them again, %d dead letters, %d lost", a.acknowledged, a.done, a.duplicates, a.dead, len(a.lost))
}

func TestTheAccountFindsEachFault(t *testing.T) {
	type keys []string
	for _, c := range []struct {
		name             string
		acked, done, die keys
		faults           int
	}{
		{"all is well", keys{"fine.1", "barren.1", "cursed.1"}, keys{"fine.1", "fine.2"}, keys{"barren.1", "cursed.1", "cursed.2"}, 0},
		{"as many again as may be", keys{"fine.1"}, keys{"fine.1", "fine.1", "fine.1"}, nil, 0},
		{"one more", keys{"fine.1"}, keys{"fine.1", "fine.1", "fine.1", "fine.1"}, nil, 1},
		{"one is lost", keys{"fine.1", "fine.2"}, keys{"fine.1"}, nil, 1},
		{"a dead letter is lost", keys{"cursed.1"}, nil, nil, 1},
		{"a dead letter too many", keys{"fine.1"}, keys{"fine.1"}, keys{"fine.1"}, 1},
		{"only a dead letter", keys{"fine.1"}, nil, keys{"fine.1"}, 2},
		{"a dead letter twice", keys{"cursed.1"}, nil, keys{"cursed.1", "cursed.1"}, 1},
		{"done, and planted", keys{"barren.1"}, keys{"barren.1"}, keys{"barren.1"}, 1},
	} {
		if got := settle(c.acked, c.done, c.die).verdict(1, 2); len(got) != c.faults {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
