package contestant

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
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
	tool, target, err := locate(ctx, spec)
	if err != nil {
		return "", err
	}
	key, err := tool.key(ctx, target)
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
	if err := tool.compile(ctx, target, folder); err != nil {
		return "", err
	}
	fmt.Fprintf(progress, "%s was built in %.0f s\n", name, time.Since(began).Seconds())
	removeUnused(filepath.Dir(folder), name)
	return program, nil
}

// goTool is the go command in a folder.
type goTool struct {
	dir string
	env []string
}

// locate finds the source, and how the go command calls it there: in the workspace or
// module of the current folder, in that which this program was compiled from, or as
// the same version of the module.
func locate(ctx context.Context, spec Spec) (tool goTool, target string, err error) {
	target = spec.Program
	if !strings.Contains(target, "/") {
		target = home + target
	}
	_, compiled, _, _ := runtime.Caller(0)
	for _, dir := range []string{".", filepath.Dir(compiled)} {
		if _, err := os.Stat(dir); err == nil {
			if _, err := (goTool{dir, []string{"GOPROXY=off"}}).run(ctx, "list", "-find", target); err == nil {
				return goTool{dir, spec.Variant}, target, nil
			}
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == lab && m.Replace == nil && strings.HasPrefix(m.Version, "v") {
				return goTool{os.TempDir(), slices.Concat(spec.Variant, []string{"GOWORK=off"})}, target + "@" + m.Version, nil
			}
		}
	}
	return tool, "", errors.New("its source is not here: run this in a clone of https://" + path.Dir(lab))
}

// key names what a build would be made of.
func (g goTool) key(ctx context.Context, target string) (string, error) {
	hash := sha256.New()
	settings, err := g.run(ctx, "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "GOEXPERIMENT", "GOFLAGS")
	if err != nil {
		return "", err
	}
	fmt.Fprintf(hash, "%s\n%s\n", target, settings)
	var list []byte
	if !strings.Contains(target, "@") { // a version says it all
		if list, err = g.run(ctx, "list", "-deps", "-json=Dir,ImportPath,Module,GoFiles,CgoFiles,SFiles,EmbedFiles", target); err != nil {
			return "", err
		}
	}
	for packages := json.NewDecoder(bytes.NewReader(list)); packages.More(); {
		var p struct {
			Dir, ImportPath string
			Module          *struct {
				Path, Version string
				Replace       *struct{}
			}
			GoFiles, CgoFiles, SFiles, EmbedFiles []string
		}
		if err := packages.Decode(&p); err != nil {
			return "", err
		}
		switch m := p.Module; {
		case m == nil: // of the standard library
			continue
		case m.Version != "" && m.Replace == nil:
			fmt.Fprintln(hash, m.Path, m.Version)
			continue
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.SFiles, p.EmbedFiles) {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return "", err
			}
			fmt.Fprintf(hash, "%s/%s %x\n", p.ImportPath, name, sha256.Sum256(data))
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:6]), nil
}

// compile builds into a folder of its own first, because another process may do the
// same at the same time.
func (g goTool) compile(ctx context.Context, target, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o777); err != nil {
		return err
	}
	own, err := os.MkdirTemp(filepath.Dir(folder), filepath.Base(folder)+".")
	if err != nil {
		return err
	}
	defer os.RemoveAll(own)
	if _, err := (goTool{g.dir, slices.Concat(g.env, []string{"GOBIN=" + own})}).run(ctx, "install", "-buildvcs=false", target); err != nil {
		return err
	}
	if err = os.Rename(own, folder); err != nil {
		if _, missing := os.Stat(folder); missing == nil { // another process was faster
			return nil
		}
	}
	return err
}

// run returns what the go command prints. When ctx ends it is killed with its
// compilers.
func (g goTool) run(ctx context.Context, args ...string) ([]byte, error) {
	runtime.LockOSThread() // see startOnOwnThread
	defer runtime.UnlockOSThread()
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env, command.SysProcAttr = g.dir, append(os.Environ(), g.env...), ownGroup()
	command.Cancel = func() error { killGroup(command.Process); return nil }
	var failed bytes.Buffer
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		lines := strings.SplitAfterN(strings.TrimSpace(failed.String()), "\n", 12)
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, strings.Join(lines[:min(len(lines), 11)], ""))
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
