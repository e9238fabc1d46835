package embedded

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeServer(t, s) })
	return s
}

func closeServer(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestFolderIsOfOneServer(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir})
	if _, err := Start(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use by another process") || !strings.Contains(err.Error(), "by its URL") {
		t.Errorf("second server: %v", err)
	}
	closeServer(t, s)
	closeServer(t, s)
	start(t, Config{Dir: dir})
}

func TestFolderThatCannotBeUsedSaysWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Dir: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file: %v", err)
	}
	readonly := filepath.Join(t.TempDir(), "readonly")
	if err := os.Mkdir(readonly, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.WriteFile(filepath.Join(readonly, "probe"), nil, 0o600) == nil {
		t.Log("this user may write everywhere: the folder without permission is not tested")
		return
	}
	if _, err := Start(Config{Dir: readonly}); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("read-only: %v", err)
	}
}

func TestFullDiskSaysSo(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, lockName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a full disk: %v", err)
	}
}

func TestWrongConfigNamesEveryField(t *testing.T) {
	_, err := Start(Config{MaxBytes: -1, MaxPayload: -1, Listen: "4222"})
	for _, field := range []string{"Dir", "MaxBytes", "MaxPayload", "Listen"} {
		if err == nil || !strings.Contains(err.Error(), field+" is") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestNoPortUnlessAsked(t *testing.T) {
	s := start(t, Config{Dir: t.TempDir()})
	if s.URL() != "" || s.server.Addr() != nil {
		t.Errorf("it listens at %q, %v", s.URL(), s.server.Addr())
	}
	nc, err := nats.Connect("", nats.InProcessServer(s.Engine()), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()

	s = start(t, Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", NoSync: true})
	if s.Engine().SyncsAlways() {
		t.Error("it says that it syncs always")
	}
	if nc, err = nats.Connect(s.URL(), nats.Timeout(time.Minute)); err != nil { // the default of two seconds may be too short
		t.Fatal(err)
	}
	nc.Close()
}

func TestADiskThatIsNearlyFullHasNoRoom(t *testing.T) {
	s := start(t, Config{Dir: t.TempDir()})
	if _, known := s.free(); !known && runtime.GOOS == "linux" {
		t.Error("the room on the disk is not known")
	}
	for free, want := range map[int64]bool{keptFree: true, keptFree - 1: false} {
		s.free = func() (int64, bool) { return free, true }
		if err := s.Engine().Room(); (err == nil) != want {
			t.Errorf("%d bytes: %v", free, err)
		}
	}
	s.free = func() (int64, bool) { return 0, false }
	if err := s.Engine().Room(); err != nil {
		t.Errorf("a disk that is not known: %v", err)
	}
}

// A queue asks before each commit, and the system call took a tenth of a commit's time.
func TestAnEmptyDiskIsLookedAtNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, free := 0, int64(amply)
		s := &Server{free: func() (int64, bool) { looks++; return free, true }}
		for range 1000 {
			if err := s.Engine().Room(); err != nil {
				t.Error(err)
			}
		}
		if looks != 1 {
			t.Errorf("%d looks at once", looks)
		}
		time.Sleep(lookEvery)
		if free = keptFree - 1; s.Engine().Room() == nil {
			t.Errorf("a full disk is not seen after %s", lookEvery)
		}
		free, looks = amply-1, 0
		for range 1000 {
			_ = s.Engine().Room()
		}
		if looks != 1000 {
			t.Errorf("%d looks at a disk that may soon be full", looks)
		}
	})
}

func TestAServerThatStartsAgainIsWhereItWas(t *testing.T) {
	s := start(t, Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	url, old := s.URL(), s.running()
	old.Shutdown()
	old.WaitForShutdown()
	if _, err := s.Engine().InProcessConn(); err == nil {
		t.Error("it runs")
	}
	s.restart(time.Millisecond)
	nc, err := nats.Connect(url, nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if s.URL() != url || s.Engine().Failed() != nil {
		t.Errorf("%s, was %s: %v", s.URL(), url, s.Engine().Failed())
	}
}
