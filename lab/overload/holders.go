package overload

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// holding are the kinds of clients whose requests wait and ask the backend for nothing. Each kind comes to a service of
// its own when the measurement begins: what a limiter needs to find them out counts.
var holding = []striker{
	{name: "slow readers", first: "GET /report HTTP/1.1\r\nHost: h\r\n\r\n", stops: true},
	{name: "stalled bodies", first: upload + "1\r\na\r\n"},
	{name: "long polls", first: "GET /poll HTTP/1.1\r\nHost: h\r\n\r\n"},
	{name: "a hung dependency", first: "GET /mail HTTP/1.1\r\nHost: h\r\n\r\n"},
}

const (
	holderCount = 100
	holderPause = 500 * time.Millisecond // until a client begins anew
	smallBuffer = 16 << 10               // of each connection, in each direction
	reportSize  = 4 << 20
	pollTime    = 1500 * time.Millisecond
)

// smallBuffers keeps the kernel from taking an answer that its client does not read.
func smallBuffers(ctx context.Context, c net.Conn) context.Context {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(smallBuffer)
	}
	return ctx
}

// besideHolders are the scenes of lookups beside holders of each kind, behind each contestant.
func besideHolders() (out []*scene) {
	for _, k := range holding {
		k.pause = holderPause
		setup := holders + ", " + k.name
		out = append(out, &scene{
			name: holders, setup: setup, title: setup, contestants: []string{Spillway, Spillway, None, Semaphore, Failsafe}, handler: admitted,
			program: program, slots: usual.Slots, wait: 100 * time.Millisecond, kinds: []kind{{name: "all", parts: 1, path: "/work", deadline: deadline}},
			times: .2, before: []before{{lasts: 3 * time.Second}}, time: 6 * time.Second, tail: afterwards,
			crowded: .1, uses: .1, during: func(_ context.Context, t *trial) (stop func() error, err error) { return k.hold(t), nil },
			figures: func(t *trial) map[string]float64 {
				return map[string]float64{answered.Key: 100 * t.run.Share("ok"), "holders_refused": t.noted["holders_refused"]}
			},
		})
	}
	return out
}

// hold has holders come when the measurement begins.
func (k striker) hold(t *trial) (stop func() error) {
	ctx, end := context.WithCancel(t.srv.Loading)
	var refused atomic.Int64
	var all sync.WaitGroup
	for range holderCount {
		all.Go(func() { k.attack(ctx, strings.TrimPrefix(t.url, "http://"), time.Until(t.from), &refused) })
	}
	return func() error {
		end()
		all.Wait()
		t.noted["holders_refused"] = float64(refused.Load())
		return nil
	}
}
