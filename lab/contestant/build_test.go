package contestant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// answering is a program that answers every role with a number.
const answering = `package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Println("{\"result\":%s}")
}
`

const fake = "example.com/fake"

// module is a module of one program in the current folder, and an empty cache folder
// beside it. The returned function writes the program.
func module(t *testing.T) (write func(body string)) {
	t.Helper()
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, cache := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	for name, value := range map[string]string{
		"GOCACHE": strings.TrimSpace(string(goCache)), "GOWORK": "off", "GOFLAGS": "",
		"XDG_CACHE_HOME": cache, "HOME": cache, "LocalAppData": cache,
	} {
		t.Setenv(name, value)
	}
	write = func(body string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(body), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+fake+"\n\ngo 1.26\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return write
}

// In a user's module that requires ours by a replace directive, our program once was
// found and could not be built: nobody had put what it requires into the user's go.sum.
func TestAProgramIsNotBuiltFromAModuleThatRequiresIt(t *testing.T) {
	write := module(t)
	write("package main\n\nfunc main() {}\n")
	for name, text := range map[string]string{
		"go.mod":          "module " + fake + "\n\ngo 1.26\n\nrequire example.com/ours v0.0.0\n\nreplace example.com/ours => ./ours\n",
		"ours/go.mod":     "module example.com/ours\n\ngo 1.26\n",
		"ours/cmd/cmd.go": "package main\n\nfunc main() {}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if src, err := locate(t.Context(), Spec{Program: "example.com/ours/cmd"}); err == nil {
		t.Errorf("found in %s", src.dir)
	}
	if src, err := locate(t.Context(), Spec{Program: fake}); err != nil || src.dir != "." {
		t.Errorf("its own: %q, %v", src.dir, err)
	}
}

// asAnotherProcess builds without what this process remembers.
func asAnotherProcess(t *testing.T, spec Spec) (program, progress string) {
	t.Helper()
	built.Lock()
	clear(built.paths)
	built.Unlock()
	var said strings.Builder
	program, err := Build(t.Context(), spec, &said)
	if err != nil {
		t.Fatal(err)
	}
	return program, said.String()
}

func TestAProgramIsBuiltOnceForItsSource(t *testing.T) {
	write := module(t)
	write(fmt.Sprintf(answering, "1"))
	spec := Spec{Program: fake, Role: "any"}
	first, said := asAnotherProcess(t, spec)
	if lines := strings.Split(said, "\n"); len(lines) != 3 || !strings.Contains(lines[0], "building the program fake, once") || !strings.Contains(lines[1], "was built in") {
		t.Errorf("progress of the build: %q", said)
	}
	if again, said := asAnotherProcess(t, spec); again != first || said != "" {
		t.Errorf("from the cache: %s instead of %s, %q", again, first, said)
	}
	got := 0
	if _, err := Run(t.Context(), spec, &got); err != nil || got != 1 {
		t.Errorf("answered %d, %v", got, err)
	}
	old := time.Now().Add(-2 * keptUnused)
	if err := os.Chtimes(filepath.Dir(first), old, old); err != nil {
		t.Fatal(err)
	}

	write(fmt.Sprintf(answering, "2"))
	second, said := asAnotherProcess(t, spec)
	if second == first || said == "" {
		t.Errorf("the source changed: %s, %q", second, said)
	}
	if _, err := Run(t.Context(), spec, &got); err != nil || got != 2 {
		t.Errorf("answered %d, %v", got, err)
	}
	variant, _ := asAnotherProcess(t, Spec{Program: fake, Variant: []string{"GOFLAGS=-ldflags=-w"}}) // for which nothing but the link is new
	if variant == second {
		t.Error("a variant is the program itself")
	}
	entries, err := os.ReadDir(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "spillway", "bin"))
	if err == nil && len(entries) != 2 { // elsewhere the cache folder has another name
		t.Errorf("the unused build and the temporary folders are gone, but there are %v", entries)
	}
}

func TestTwoProcessesThatBuildAtOnceGetOneProgram(t *testing.T) {
	module(t)(fmt.Sprintf(answering, "1"))
	var programs [4]string
	var all sync.WaitGroup
	for i := range programs {
		all.Go(func() {
			var err error
			if programs[i], err = build(t.Context(), Spec{Program: fake}, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := os.Stat(programs[0]); err != nil || len(slices.Compact(programs[:])) != 1 {
		t.Errorf("%v, %v", programs, err)
	}
}

func TestAProgramThatCannotBeBuiltSaysWhy(t *testing.T) {
	write := module(t)
	write("package main\n\nfunc main() { undefined() }\n")
	failure := func(ctx context.Context, spec Spec) error {
		_, err := Build(ctx, spec, &strings.Builder{})
		return err
	}
	if err := failure(t.Context(), Spec{Program: fake}); err == nil || !strings.Contains(err.Error(), "main.go:3:15: undefined: undefined") {
		t.Errorf("the compiler's first lines: %v", err)
	}
	if err := failure(t.Context(), Spec{Program: "example.com/elsewhere"}); err == nil || !strings.Contains(err.Error(), "does not find its source") {
		t.Errorf("no source: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := failure(ended, Spec{Program: fake}); !errors.Is(err, context.Canceled) {
		t.Errorf("Ctrl-C: %v", err)
	}
	t.Setenv("PATH", "")
	if err := failure(t.Context(), Spec{Program: fake}); err == nil || !strings.Contains(err.Error(), "there is no go command in PATH: install Go") {
		t.Errorf("no go command: %v", err)
	}
}

func TestAProcessThatPlaysTheRoleStartsItself(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Build(t.Context(), Spec{Program: "nowhere", Role: "double"}, nil); err != nil || got != own {
		t.Errorf("%s, %v", got, err)
	}
}
