package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/load/loadgen"
)

// send sends the requests of a scene to the service, and returns what came of them.
func send(ctx context.Context, s *scene, address string) (string, error) {
	var parts []loadgen.Part
	for _, rt := range routes {
		method, _, _ := strings.Cut(rt.pattern, " ")
		cfg := loadgen.HTTPConfig{URL: "http://" + address + rt.path, Method: method, Timeout: 3 * deadline}
		if method == http.MethodPost {
			cfg.Body = []byte("a small document")
		}
		target, err := loadgen.NewHTTP(cfg)
		if err != nil {
			return "", err
		}
		defer target.Close()
		parts = append(parts, loadgen.Part{Class: rt.pattern, Weight: rt.weight, Target: target})
	}
	mix, err := loadgen.Mix(1, parts...)
	if err != nil {
		return "", err
	}
	var slow sync.WaitGroup
	defer slow.Wait()
	if s.slow > 0 {
		timer := time.AfterFunc(calm, func() {
			for range s.slow {
				slow.Go(func() { repeat(ctx, func() { downloadSlowly(ctx, address) }) })
				slow.Go(func() { repeat(ctx, func() { uploadSlowly(ctx, address) }) })
			}
		})
		defer timer.Stop()
	}
	r, err := loadgen.Run(ctx, loadgen.Config{
		Target: mix,
		Open:   loadgen.Random(1, loadgen.Steady(calmRate, calm), loadgen.Steady(calmRate*max(s.more, 1), trouble)),
	})
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("%d offered", r.Offered)
	for _, o := range loadgen.Outcomes() {
		said += fmt.Sprintf(", %d %v", r.Outcomes[o].Count, o)
	}
	return said, nil
}

func repeat(ctx context.Context, do func()) {
	for ctx.Err() == nil {
		do()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// slowly is the time between two small pieces of a slow client.
const slowly = 250 * time.Millisecond

// uploadSlowly sends a document of half a megabyte in a minute.
func uploadSlowly(ctx context.Context, address string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	go func() {
		defer out.Close()
		for range 240 {
			if _, err := out.Write(make([]byte, 2<<10)); err != nil {
				return
			}
			time.Sleep(slowly)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/documents", in)
	if err != nil {
		return
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
	_ = in.Close()
}

// downloadSlowly reads a document of a megabyte in a minute.
func downloadSlowly(ctx context.Context, address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(8 << 10)
	if _, err := io.WriteString(conn, "GET /documents/1?all HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n"); err != nil {
		return
	}
	piece := make([]byte, 4<<10)
	for {
		if _, err := io.ReadFull(conn, piece); err != nil {
			return
		}
		time.Sleep(slowly)
	}
}
