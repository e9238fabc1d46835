package jetstream

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
)

// A worker keeps a slot while it waits for jobs. The engine waits for AckWait before it takes a
// slot from a silent worker. After a restart no job ran until then.
func TestWorkGoesOnAtOnceAfterARestart(t *testing.T) {
	idle := func(t *testing.T, dir string) (*queue, func() error) {
		q := open(t, Config{Server: serve(t, dir), MaxInFlight: 2, AckWait: time.Hour})
		stop := work(t, q, func(context.Context, *jobqueue.Delivery) error { return nil })
		await.True(t, "it holds a slot", func() bool {
			info, err := q.slots.Info(within(t))
			return err == nil && info.NumAckPending > 0
		})
		return q, stop
	}
	works := func(t *testing.T, server *embedded.Server) {
		q := open(t, Config{Server: server})
		enqueue(t, q, jobqueue.Job{})
		ran := make(chan bool, 1)
		work(t, q, func(context.Context, *jobqueue.Delivery) error { ran <- true; return nil })
		await.Receive(t, "a job runs", ran)
	}
	t.Run("of a process that was killed", func(t *testing.T) {
		dir, left := t.TempDir(), ""
		_, stop := idle(t, dir)
		await.True(t, "a copy of what is on the disk now", func() bool {
			left = t.TempDir()
			err := os.CopyFS(left, os.DirFS(dir))
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // the engine has renamed a file during the copy
				t.Fatal(err)
			}
			return err == nil
		})
		_ = stop()
		works(t, serve(t, left))
	})
	t.Run("of one that has closed its queue, and lets others in", func(t *testing.T) {
		dir := t.TempDir()
		q, stop := idle(t, dir)
		_ = stop()
		_ = q.Close()
		_ = q.cfg.Server.(*embedded.Server).Close(t.Context())
		server, err := embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:0"})
		check(t, err)
		t.Cleanup(func() { _ = server.Close(context.Background()) })
		works(t, server)
	})
	t.Run("and a second queue of one process takes no slot from the first", func(t *testing.T) {
		q, _ := idle(t, t.TempDir())
		open(t, Config{Server: q.cfg.Server})
		if info, err := q.slots.Info(within(t)); err != nil || info.NumAckPending == 0 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}
