package admission

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/usage"
	"github.com/spillway-go/spillway/loadgen"
)

// target is the input of the hostile clients.
type target struct {
	Address string
	Idle    int // connections; 0: as many as files allow
}

// kind is one kind of hostile client: so many of them make a connection, send first, and
// then again in steps or else wait for the end, which is when the server closes the
// connection or the attack ends. After a pause they begin anew.
type kind struct {
	name    string
	clients int
	pause   time.Duration
	first   string
	half    bool // the client's half is closed after that
	again   string
	every   time.Duration
}

const (
	request = "GET /work HTTP/1.1\r\nHost: h\r\n"
	upload  = "POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	resets  = "resets"
)

// kinds are bounded in what they send, some megabytes a second: the question is what
// the server holds, not how much the loopback interface carries.
var kinds = []kind{
	{name: "slowloris", clients: 200, pause: 100 * time.Millisecond, first: request, again: "X-A: b\r\n", every: time.Second},
	{name: "headers", clients: 8, pause: 250 * time.Millisecond, first: request + "X-Long: " + strings.Repeat("a", 1<<20) + "\r\n\r\n"},
	{name: "endless", clients: 10, pause: 100 * time.Millisecond, first: upload, again: "4000\r\n" + strings.Repeat("a", 0x4000) + "\r\n", every: 20 * time.Millisecond},
	{name: "trickle", clients: 10, pause: 100 * time.Millisecond, first: upload, again: "1\r\na\r\n", every: time.Second / 2},
	{name: "half_closed", clients: 20, pause: 50 * time.Millisecond, first: request + "\r\n", half: true},
	{name: "half_request", clients: 10, pause: 50 * time.Millisecond, first: "GET /work HTTP/1.1\r\nHos", half: true},
	{name: resets, clients: 2, pause: 100 * time.Millisecond},
}

// attackers is the role of the hostile clients. It is ready when the idle connections
// stand, and then says how many connections there are at most; the others begin.
func attackers(ctx context.Context, to target, ready contestant.Ready) (any, error) {
	if host, _, err := net.SplitHostPort(to.Address); err != nil || !net.ParseIP(host).IsLoopback() {
		return nil, errors.New("hostile clients are for the loopback interface only")
	}
	held, err := holdIdle(ctx, to.Address, cmp.Or(to.Idle, min(usage.OpenFiles()/3, mostIdle)))
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	open := len(held)
	var all sync.WaitGroup
	for _, k := range kinds {
		open += k.clients
		for range k.clients {
			all.Go(func() { k.attack(ctx, to.Address) })
		}
	}
	err = ready(open)
	all.Wait()
	return open, err
}

const (
	mostIdle    = 50_000 // connections: they also need as many ports
	dialTimeout = 5 * time.Second
)

// holdIdle makes n connections that have had one answer and stay open.
func holdIdle(ctx context.Context, address string, n int) ([]net.Conn, error) {
	held := make([]net.Conn, n)
	dialling, ctx := errgroup.WithContext(ctx)
	dialling.SetLimit(32)
	for i := range held {
		dialling.Go(func() (err error) {
			if ctx.Err() != nil {
				return nil
			}
			if held[i], err = net.DialTimeout("tcp", address, dialTimeout); err == nil {
				err = oneAnswer(held[i])
			}
			return err
		})
	}
	err := dialling.Wait()
	return slices.DeleteFunc(held, func(c net.Conn) bool { return c == nil }), err
}

func oneAnswer(c net.Conn) error {
	if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(dialTimeout))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
	}
	return err
}

func (k kind) attack(ctx context.Context, address string) {
	for ctx.Err() == nil {
		if c, err := net.DialTimeout("tcp", address, dialTimeout); err == nil {
			forget := context.AfterFunc(ctx, func() { c.Close() })
			if k.name == resets {
				rapidResets(ctx, c)
			} else {
				k.strike(ctx, c)
			}
			forget()
			c.Close()
		}
		_ = service.Pause(ctx, k.pause)
	}
}

// strike returns when the connection is closed, by the server or at the end of ctx.
func (k kind) strike(ctx context.Context, c net.Conn) {
	_, err := io.WriteString(c, k.first)
	if tcp, ok := c.(*net.TCPConn); ok && k.half {
		_ = tcp.CloseWrite()
	}
	if k.again == "" {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	for ; err == nil && ctx.Err() == nil; _ = service.Pause(ctx, k.every) {
		_, err = io.WriteString(c, k.again)
	}
}

// frame appends a frame of HTTP/2.
func frame(to []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	to = append(to, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(to, stream), payload...)
}

// resetBurst is how many streams are opened and cancelled every 10 ms.
const resetBurst = 10

// rapidResets opens streams and cancels each at once: the client is done with it, and
// the server has begun.
func rapidResets(ctx context.Context, c net.Conn) {
	go func() { _, _ = io.Copy(io.Discard, c) }() // until the connection is closed
	// In HPACK: GET, http, and the path and the authority literally.
	asking := append([]byte{0x82, 0x86, 0x04, 5}, "/work"...)
	asking = append(asking, 0x01, 1, 'h')
	const headers, reset, settings = 1, 3, 4 // kinds of frames
	const endOfStream, endOfHeaders = 1, 4   // flags
	cancelled := []byte{0, 0, 0, 8}
	out := frame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings, 0, 0, nil)
	for stream := uint32(1); ctx.Err() == nil; {
		for range resetBurst {
			out = frame(out, headers, endOfStream|endOfHeaders, stream, asking)
			out = frame(out, reset, 0, stream, cancelled)
			stream += 2
		}
		if _, err := c.Write(out); err != nil {
			return
		}
		out = out[:0]
		_ = service.Pause(ctx, 10*time.Millisecond)
	}
}

const probeRate = 50 // a second

// The memory that a server under attack may use: what it uses anyway, and what a
// connection costs.
const (
	ownMemory        = 64 << 20
	connectionMemory = 32 << 10
)

// hostile measures what probes and known clients see while hostile clients, in a
// process of their own, do what they can. The pattern calm is the same without them.
func (c Config) hostile(ctx context.Context, srv *service.Service, j service.Job) (results.Run, error) {
	open, end := 0, func() error { return nil }
	if j.Pattern != calm {
		attack, err := contestant.Start(ctx, c.Spec("", roleAttackers, target{srv.Address, c.Connections}), &open)
		if err != nil {
			return results.Run{}, err
		}
		end = func() error { _, err := attack.Stop(ctx, nil); return err }
	}
	send := func(path string, header http.Header, arrivals loadgen.Schedule) (*loadgen.Result, error) {
		target, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: "http://" + srv.Address + path, Header: header})
		if err != nil {
			return nil, err
		}
		defer target.Close()
		return loadgen.Run(srv.Loading, loadgen.Config{Target: target, Open: arrivals, Timeout: scenes[hostile].deadline, Interval: service.Step})
	}
	var probed, res *loadgen.Result
	var both errgroup.Group
	began := time.Now()
	both.Go(func() (err error) { // as platforms do, on a new connection each
		probed, err = send("/livez", http.Header{"Connection": {"close"}}, loadgen.Constant(probeRate, c.Time))
		return err
	})
	both.Go(func() (err error) { // known clients: the others can be as many as they like, and have no priority
		known := http.Header{"Authorization": {credential}, admissionhttp.HeaderPriority: {"critical"}}
		res, err = send("/work", known, loadgen.Poisson(scenes[hostile].multiple*c.Capacity(), c.Time, j.Seed%1e6))
		return err
	})
	if err := cmp.Or(both.Wait(), end()); err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	_, err := srv.End(ctx, &run, began)
	var all histogram.Histogram
	for i := range probed.Outcomes {
		all.Merge(&probed.Outcomes[i].Latency)
	}
	run.Extra = map[string]float64{
		"probes_failed": float64(probed.Offered - probed.Outcomes[loadgen.OK].Count), "connections": float64(open), "known": 100 * res.Share(loadgen.OK),
	}
	if all.Count() > 0 {
		run.Extra["probe_p50_ms"], run.Extra["probe_p99_ms"], run.Extra["probe_worst_ms"] = float64(all.Quantile(.5))/1e6, float64(all.Quantile(.99))/1e6, float64(all.Max())/1e6
	}
	if memory := float64(run.Process.PeakRSS); memory > 0 {
		run.Extra["memory_mib"], run.Extra["memory_share"] = memory/(1<<20), 100*memory/(ownMemory+connectionMemory*float64(open))
	}
	if run.Killed != "" {
		run.Extra["probe_worst_ms"] = float64(scenes[hostile].deadline.Milliseconds()) // no probe is answered after that
	}
	return run, err
}
