//go:build linux || darwin

package proof

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

func init() { roles["cramped"] = cramped }

// A limit on the size of the process's files simulates a full disk. Setting it needs no special
// rights.
func TestAStoreThatCannotWriteLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	f := &fleet{T: t, dir: t.TempDir()}
	f.site.Store = t.TempDir()
	p := f.start(task{Role: "cramped"})
	f.await(p)
	f.stop(p)
}

// mayGrow sets how large the files of this process may become.
func mayGrow(bytes uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(bytes, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// cramped fills a queue until its server cannot write, makes room, and continues with the same
// queue. Config.Wait is longer than the test waits for this process.
func cramped(ctx context.Context, t task) (err error) {
	server, err := embedded.Start(embedded.Config{Dir: filepath.Join(t.Site.Store, "jobs")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close(context.Background())) }()
	q, err := jetstream.Open(ctx, jetstream.Config{Server: server, Wait: 10 * await.Limit})
	if err != nil {
		return err
	}
	defer q.Close()
	missing := map[string]bool{}
	put := func() error {
		key := fmt.Sprint(len(missing))
		r, err := q.Enqueue(ctx, jobqueue.Job{Key: key, Payload: make([]byte, 16<<10)})
		if err == nil && !r.Duplicate {
			missing[key] = true
		}
		return err
	}
	if err := mayGrow(512 << 10); err != nil {
		return err
	}
	for err == nil && len(missing) < 1000 {
		err = put()
	}
	stored := len(missing)
	if !errors.Is(err, jobqueue.ErrUnavailable) || !strings.Contains(err.Error(), "file too large") || stored == 0 {
		return fmt.Errorf("after %d jobs: %w", stored, err)
	}
	if err := mayGrow(1 << 40); err != nil {
		return err
	}
	for err := put(); err != nil; err = put() {
		pause(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("it does not go on: %w", err)
		}
	}
	var mu sync.Mutex
	working, stop := context.WithCancel(ctx)
	defer stop()
	err = q.Work(working, func(_ context.Context, d *jobqueue.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if delete(missing, d.Key); len(missing) == 0 {
			stop()
		}
		return nil
	})
	if len(missing) > 0 {
		return fmt.Errorf("%d jobs are lost, Work said: %w", len(missing), err)
	}
	fmt.Println("ready")
	return nil
}
