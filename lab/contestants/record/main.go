// Command record records real backends, so that the simulator can play them. It asks each one for
// work, by so many workers at once, on a quiet machine and beside neighbours that compute:
//
//	go run ./lab/contestants/record -write              # from the root; renews internal/sim/testdata/recorded
//	go run ./lab/contestants/record -kinds redis-script # prints one
//
// It needs Redis and PostgreSQL on their local ports, mariadbd and python3, and some ten minutes of a
// machine that does nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
)

const folder = "internal/sim/testdata/recorded"

// The names of the other programs that this one is: it starts them from itself.
const (
	asNeighbour = "neighbour"
	asUpstream  = "upstream"
)

func main() {
	switch flag.Parse(); flag.Arg(0) {
	case asNeighbour:
		neighbour()
	case asUpstream:
		serveUpstream()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := recordAll(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

var (
	write    = flag.Bool("write", false, "write the files in "+folder+" instead of printing them")
	only     = flag.String("kinds", "", "record only these `kinds`, separated by commas: "+strings.Join(names(), ", "))
	postgres = flag.String("postgres", "postgres://root@127.0.0.1:5432/test", "a PostgreSQL `database`, for a schema of its own")
	redisAt  = flag.String("redis", "127.0.0.1:6379", "`address` of a Redis")
)

// neighbours is how many make the machine noisy.
const neighbours = 3

func names() (all []string) {
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

func recordAll(ctx context.Context) error {
	chosen := names()
	if *only != "" {
		chosen = strings.Split(*only, ",")
	}
	for _, name := range chosen {
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if at < 0 {
			return fmt.Errorf("there is no kind %q: use some of %s", name, strings.Join(names(), ", "))
		}
		for _, state := range []string{"quiet", "noisy"} {
			if err := recordOne(ctx, &kinds[at], state); err != nil {
				return fmt.Errorf("%s, %s: %w", name, state, err)
			}
		}
	}
	return nil
}

func recordOne(ctx context.Context, k *kind, state string) error {
	dir, err := os.MkdirTemp("", "record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &backend{dir: dir}
	defer b.close()
	if err := k.open(ctx, b); err != nil {
		return err
	}
	busy := awaitQuiet(ctx)
	beside := 0
	if state == "noisy" {
		beside = neighbours
	}
	for i := range beside {
		if err := b.start(exec.Command(os.Args[0], asNeighbour), nil); err != nil {
			return fmt.Errorf("neighbour %d: %w", i, err)
		}
	}
	r, err := record(ctx, b.work)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s, %s: at most %.0f a second, the machine was %.0f %% busy before\n", k.name, state, r.best().rate, 100*busy)
	text := fmt.Sprintf(`# %s (%s)
# recorded on %s by: go run ./lab/contestants/record -write
# %d processors, %s, %s; %d neighbours that compute in spells of 0.4 s; processors busy before: %.0f %%
%s`, k.what, b.version, time.Now().Format(time.DateOnly), runtime.NumCPU(), processor(), runtime.Version(), beside, 100*busy, r)
	if !*write {
		_, err = fmt.Print(text)
		return err
	}
	return os.WriteFile(filepath.Join(folder, k.name+"-"+state+".txt"), []byte(text), 0o644)
}

// awaitQuiet waits a minute at most until the processors are idle, and returns the share of them that was busy last.
func awaitQuiet(ctx context.Context) (busy float64) {
	for began := time.Now(); ; {
		idle, all := times()
		select {
		case <-ctx.Done():
			return busy
		case <-time.After(time.Second):
		}
		idleNow, allNow := times()
		busy = 1 - (idleNow-idle)/max(allNow-all, 1)
		if busy < .1 || time.Since(began) > time.Minute {
			return busy
		}
	}
}

// times returns how long the processors were idle since the machine started, and in all, in ticks. It
// returns zeros where the system does not say.
func times() (idle, all float64) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	var ticks [8]float64 // user, nice, system, idle, waiting, interrupts, soft interrupts, stolen
	fmt.Sscanf(line, "cpu %g %g %g %g %g %g %g %g", &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7])
	for _, n := range ticks {
		all += n
	}
	return ticks[3] + ticks[4], all
}

// processor returns the name of the processor.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return runtime.GOARCH
}

// neighbour computes in spells of 0.4 s, with pauses of 0 to 0.8 s, until its process is killed.
func neighbour() {
	for {
		for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); {
			burn.Turns(20_000)
		}
		time.Sleep(rand.N(800 * time.Millisecond))
	}
}

// backend is an open backend.
type backend struct {
	dir     string // for its files
	version string
	work    work
	closers []func()
}

func (b *backend) onClose(f func()) { b.closers = append(b.closers, f) }

func (b *backend) close() {
	for _, f := range slices.Backward(b.closers) {
		f()
	}
}

// start starts a process, which close kills. If line is not nil, start waits for the first line that the process prints.
func (b *backend) start(cmd *exec.Cmd, line *string) error {
	cmd.Stderr = os.Stderr
	var out io.Reader
	if line != nil {
		var err error
		if out, err = cmd.StdoutPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.onClose(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line == nil {
		return nil
	}
	if _, err := fmt.Fscanln(out, line); err != nil {
		return errors.Join(fmt.Errorf("%s did not say where it listens", cmd.Path), err)
	}
	return nil
}
