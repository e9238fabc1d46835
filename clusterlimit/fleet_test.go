package clusterlimit

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/soak"
)

// wire is the dialer of one connection, which counts all bytes in both directions.
type wire struct{ bytes atomic.Uint64 }

func (w *wire) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return counted{c, w}, err
}

type counted struct {
	net.Conn
	to *wire
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.to.bytes.Add(uint64(n))
	return n, err
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.to.bytes.Add(uint64(n))
	return n, err
}

// Of two hundred members that joined at once, 64 to 99 failed, and were told to give the budget a
// longer lease.
func TestTwoHundredMembersJoinAtOnce(t *testing.T) {
	soak.WithoutRace(t)
	const members = 200
	url := engine(t)
	all := make([]*Member, members)
	wired := make([]wire, members)
	began := time.Now()
	var joining sync.WaitGroup
	for i := range all {
		joining.Go(func() {
			var err error
			if all[i], err = Join(await.Context(t, "a lease"), Config{URL: url, Options: []nats.Option{nats.SetCustomDialer(&wired[i]), nats.Timeout(await.Limit)}, Concurrency: 2 * members}); err != nil {
				t.Error(err)
			}
		})
	}
	joining.Wait()
	t.Logf("all have joined after %v", time.Since(began))
	if t.Failed() {
		t.FailNow()
	}
	defer func() {
		var closing sync.WaitGroup
		for _, m := range all {
			closing.Go(func() { m.Close(context.Background()) })
		}
		closing.Wait()
	}()
	traffic := func() (bytes, renewals uint64) {
		for i, m := range all {
			bytes += wired[i].bytes.Load()
			renewals += m.reading().renewals
		}
		return bytes, renewals
	}
	await.True(t, "all have a slot, and know of all", func() bool {
		for _, m := range all {
			if s := m.Stats(); s.Slots == 0 || s.Members != members {
				return false
			}
		}
		return true
	})
	if n := sum(all...); n > 2*members {
		t.Errorf("%d slots are leased", n)
	}
	bytes, renewals := traffic()
	await.True(t, "each has renewed five times", func() bool { _, now := traffic(); return now >= renewals+5*members })
	later, now := traffic()
	each := float64(later-bytes) / float64(now-renewals)
	t.Logf("%.0f bytes for each renewal", each)
	if each > 5000 { // a member of a budget with many members renews once a second
		t.Errorf("a renewal takes %.0f bytes", each)
	}
}
