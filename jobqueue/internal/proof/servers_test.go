package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue/embedded"
)

// freeAddr returns an address on which a server can listen, even again after a kill. Its port is
// below the ephemeral ports, so another process hardly takes it in between.
func freeAddr(t *testing.T) string {
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// serve runs the embedded server.
func serve(ctx context.Context, t task) error {
	s, err := embedded.Start(embedded.Config{Dir: t.Site.Store, Listen: t.Site.Addrs[0]})
	if err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return s.Close(context.Background())
}

// node runs one server of a cluster.
func node(ctx context.Context, t task) error {
	o := &server.Options{
		ServerName: fmt.Sprint("node", t.Node), JetStream: true, SyncAlways: true, NoSigs: true,
		StoreDir: filepath.Join(t.Site.Store, fmt.Sprint("node", t.Node)),
		Cluster:  server.ClusterOpts{Name: "proof"},
	}
	var err error
	if o.Host, o.Port, err = split(t.Site.Addrs[t.Node]); err != nil {
		return err
	}
	if o.Cluster.Host, o.Cluster.Port, err = split(t.Site.Routes[t.Node]); err != nil {
		return err
	}
	for _, r := range t.Site.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r})
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	go s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(await.Limit) {
		return errors.New("the server did not start")
	}
	ready()
	<-ctx.Done()
	return nil
}

func split(addr string) (host string, port int, err error) {
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return "", 0, err
	}
	return a.IP.String(), a.Port, nil
}

// current reports whether every replica of every stream is complete.
func current(ctx context.Context, addrs []string, nodes int) bool {
	nc, err := nats.Connect("nats://"+strings.Join(addrs, ",nats://"), nats.Timeout(await.Limit))
	if err != nil {
		return false
	}
	defer nc.Close()
	client, err := js.New(nc)
	if err != nil {
		return false
	}
	streams := client.ListStreams(ctx)
	n := 0
	for info := range streams.Info() {
		n++
		c := info.Cluster
		if c == nil || c.Leader == "" || len(c.Replicas) != nodes-1 {
			return false
		}
		for _, r := range c.Replicas {
			if !r.Current || r.Offline {
				return false
			}
		}
	}
	return streams.Err() == nil && n > 0
}
