package contestant

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	lab  = "github.com/spillway-go/spillway/lab"
	home = lab + "/contestants/" // of the programs with short names

	// keptUnused is how long a program of other sources is kept after its last use:
	// somebody may be measuring it.
	keptUnused = 24 * time.Hour
)

// Spec says which contestant to start.
type Spec struct {
	Role      string
	Input     any           // encoded as JSON
	MemoryCap uint64        // bytes of resident memory; 0: none
	TimeCap   time.Duration // for the whole run; 0: none
	Env       []string      // added to this process's environment
	Under     []string      // a command that runs the contestant, such as a debugger with its flags; empty: none

	// Program is the name of a folder of lab/contestants, or the import path of a
	// command; empty: this program. If this process plays the role itself, as in the
	// program's own tests, it starts itself. Otherwise see Build.
	Program string
	Variant []string // the environment of its build, such as GOEXPERIMENT=jsonv2
}

// built are the paths that Build has returned, by program and variant.
var built = struct {
	sync.Mutex
	paths map[string]string
}{paths: map[string]string{}}

// Build returns the path of the program that plays spec's role. That is this process's
// own if it plays the role itself; any other is built, once for its sources, and kept
// in the user's cache folder. progress gets a line at the start and at the end of a
// build.
func Build(ctx context.Context, spec Spec, progress io.Writer) (string, error) {
	if _, own := played[spec.Role]; spec.Program == "" || own && spec.Variant == nil {
		return os.Executable()
	}
	built.Lock()
	defer built.Unlock()
	id := strings.Join(append([]string{spec.Program}, spec.Variant...), " ")
	if program, ok := built.paths[id]; ok {
		return program, ctx.Err()
	}
	program, err := build(ctx, spec, progress)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("the program %s cannot be built: %w", path.Base(spec.Program), err)
	}
	built.paths[id] = program
	return program, nil
}

// build is Build without the memory of this process.
func build(ctx context.Context, spec Spec, progress io.Writer) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errors.New("there is no go command in PATH: install Go from https://go.dev/dl, or add its folder to PATH")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder to keep it in: %w", err)
	}
	src, err := locate(ctx, spec)
	if err != nil {
		return "", err
	}
	key, err := src.key(ctx)
	if err != nil {
		return "", err
	}
	name := path.Base(spec.Program)
	program := filepath.Join(cache, "spillway", "bin", name+"-"+key, name)
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	folder := filepath.Dir(program)
	if _, err := os.Stat(program); err == nil {
		now := time.Now()
		return program, os.Chtimes(folder, now, now)
	}
	began := time.Now()
	fmt.Fprintf(progress, "building the program %s, once for this source: about a minute if the go command has never compiled it\n", name)
	if err := src.compile(ctx, folder); err != nil {
		return "", err
	}
	fmt.Fprintf(progress, "%s was built in %.0f s\n", name, time.Since(began).Seconds())
	removeUnused(filepath.Dir(folder), name)
	return program, nil
}

// source is a program as the go command names it, in a folder with an environment.
type source struct {
	target, dir string
	env         []string
}

// locate finds the source: in the workspace or module of the current folder, in that
// which this program was compiled from, or as the same version of the module.
func locate(ctx context.Context, spec Spec) (source, error) {
	target := spec.Program
	if !strings.Contains(target, "/") {
		target = home + target
	}
	places := []string{"."}
	if _, compiled, _, _ := runtime.Caller(0); filepath.IsAbs(compiled) { // not with -trimpath
		places = append(places, filepath.Dir(compiled))
	}
	var said error
	for _, dir := range places {
		// A module that merely requires ours need not know what our programs require.
		ours, err := (source{target, dir, []string{"GOPROXY=off"}}).run(ctx, "list", "-find", "-f", "{{.Module.Main}}", target)
		if strings.TrimSpace(string(ours)) == "true" {
			return source{target, dir, spec.Variant}, nil
		}
		said = cmp.Or(err, said, errors.New("a module that requires it is not enough"))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == lab && m.Replace == nil && strings.HasPrefix(m.Version, "v") {
				return source{target + "@" + m.Version, os.TempDir(), append(slices.Clip(spec.Variant), "GOWORK=off")}, nil
			}
		}
	}
	return source{}, fmt.Errorf("the go command does not find its source: %w; run this in a clone of https://%s", said, path.Dir(lab))
}

// files is how the go command lists a package: its path and version, and its folder with its files unless a
// version says it all.
const files = `{{.ImportPath}} {{with .Module}}{{.Version}}{{end}}` +
	`{{if and .Module (or (not .Module.Version) .Module.Replace)}}` + "\t{{.Dir}}" +
	`{{range .GoFiles}}` + "\t{{.}}" + `{{end}}{{range .CgoFiles}}` + "\t{{.}}" + `{{end}}{{range .SFiles}}` + "\t{{.}}" + `{{end}}{{range .EmbedFiles}}` + "\t{{.}}" + `{{end}}{{end}}`

// key names what a build would be made of.
func (s source) key(ctx context.Context) (string, error) {
	settings, err := s.run(ctx, "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "GOEXPERIMENT", "GOFLAGS")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n", s.target, settings)
	var list []byte
	if !strings.Contains(s.target, "@") { // a version says it all
		if list, err = s.run(ctx, "list", "-deps", "-f", files, s.target); err != nil {
			return "", err
		}
	}
	for line := range strings.Lines(string(list)) {
		of := strings.Split(strings.TrimSpace(line), "\t")
		fmt.Fprintln(hash, of[0])
		for i := 2; i < len(of); i++ {
			data, err := os.ReadFile(filepath.Join(of[1], of[i]))
			if err != nil {
				return "", err
			}
			fmt.Fprintf(hash, "%s %x\n", of[i], sha256.Sum256(data))
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:6]), nil
}

// compile builds into a folder of its own first, because another process may do the
// same at the same time.
func (s source) compile(ctx context.Context, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o777); err != nil {
		return err
	}
	own, err := os.MkdirTemp(filepath.Dir(folder), filepath.Base(folder)+".")
	if err != nil {
		return err
	}
	defer os.RemoveAll(own)
	s.env = append(slices.Clip(s.env), "GOBIN="+own)
	if _, err := s.run(ctx, "install", "-buildvcs=false", s.target); err != nil {
		return err
	}
	err = os.Rename(own, folder)
	if _, missing := os.Stat(folder); missing == nil { // also if another process was faster
		return nil
	}
	return err
}

// run returns what the go command prints. When ctx ends it is killed with its
// compilers.
func (s source) run(ctx context.Context, args ...string) ([]byte, error) {
	runtime.LockOSThread() // see Process.run
	defer runtime.UnlockOSThread()
	var failed head
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env, command.Stderr, command.SysProcAttr = s.dir, append(os.Environ(), s.env...), &failed, ownGroup()
	command.Cancel = func() error { killGroup(command.Process); return nil }
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w%s", args[0], err, failed)
	}
	return out, nil
}

// removeUnused removes the builds of a program that nobody used for a while.
func removeUnused(bin, name string) {
	folders, _ := filepath.Glob(filepath.Join(bin, name+"-????????????*"))
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > keptUnused {
			_ = os.RemoveAll(folder)
		}
	}
}
