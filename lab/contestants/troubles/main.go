// Command troubles plays what goes wrong with a service, and records what a limiter in front of the
// service says of it. The debug page and the alerts are tested with these recordings:
//
//	go run ./lab/contestants/troubles -write            # from the root; renews internal/debugpage/testdata/troubles
//	go run ./lab/contestants/troubles -scenes stall,gc  # plays some, and prints what each recording has
//
// Each scene is a process of its own: a service of ten routes in front of a SQLite database, and
// requests that arrive whether answers come or not. It is calm first, and then has its trouble. All
// scenes take some 25 minutes of a machine that does nothing else.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const folder = "internal/debugpage/testdata/troubles"

// asService is the name of the other program that this one is: it starts the service from itself.
const asService = "service"

var (
	write = flag.Bool("write", false, "write the files in "+folder+" instead of a temporary folder")
	only  = flag.String("scenes", "", "play only these `scenes`, separated by commas: "+strings.Join(names(), ", "))
)

const (
	calm    = 30 * time.Second  // the beginning of a scene
	trouble = 150 * time.Second // the rest of it
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if flag.Arg(0) == asService {
		err = serve(ctx, flag.Arg(1), flag.Arg(2), flag.Arg(3))
	} else {
		err = playAll(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "troubles:", err)
		os.Exit(1)
	}
}

func names() (all []string) {
	for _, s := range scenes {
		all = append(all, s.name)
	}
	return all
}

// playAll plays the chosen scenes: those that fill the processors alone, and of the others some at a time.
func playAll(ctx context.Context) error {
	chosen := names()
	if *only != "" {
		chosen = strings.Split(*only, ",")
	}
	to := folder
	if !*write {
		var err error
		if to, err = os.MkdirTemp("", "troubles-"); err != nil {
			return err
		}
	}
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git does not know the commit that the recordings name: %w", err)
	}
	commit := strings.TrimSpace(string(out))
	var light, alone []*scene
	for _, name := range chosen {
		i := slices.IndexFunc(scenes, func(s scene) bool { return s.name == name })
		switch {
		case i < 0:
			return fmt.Errorf("there is no scene %q: use some of %s", name, strings.Join(names(), ", "))
		case scenes[i].alone:
			alone = append(alone, &scenes[i])
		default:
			light = append(light, &scenes[i])
		}
	}
	err = playSome(ctx, to, commit, light, 3)
	return errors.Join(err, playSome(ctx, to, commit, alone, 1))
}

func playSome(ctx context.Context, to, commit string, scenes []*scene, most int) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	places := make(chan struct{}, most)
	for _, s := range scenes {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			err := play(ctx, s, commit, filepath.Join(to, s.name+".jsonl.gz"))
			if err != nil {
				err = fmt.Errorf("%s: %w", s.name, err)
			}
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// play starts the service of a scene and sends requests to it. The service writes the recording.
func play(ctx context.Context, s *scene, commit, file string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The service needs no longer than the scene, and some seconds at its ends.
	ctx, cancel := context.WithTimeout(ctx, calm+trouble+time.Minute)
	defer cancel()
	service := exec.CommandContext(ctx, os.Args[0], asService, s.name, commit, file)
	service.Env = append(os.Environ(), s.env...)
	service.Stderr = os.Stderr
	out, err := service.StdoutPipe()
	if err != nil {
		return err
	}
	if err := service.Start(); err != nil {
		return err
	}
	said := bufio.NewScanner(out)
	if !said.Scan() {
		return errors.Join(errors.New("the service did not say where it listens"), service.Wait())
	}
	began := time.Now()
	sent, stop := context.WithTimeout(ctx, calm+trouble)
	defer stop()
	result, err := send(sent, s, said.Text())
	if err != nil {
		return errors.Join(err, service.Process.Kill(), service.Wait())
	}
	for said.Scan() {
	}
	if err := service.Wait(); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Printf("%-16s %4.0f s, %d kB, %s: %s\n", s.name, time.Since(began).Seconds(), info.Size()/1000, file, result)
	return nil
}
