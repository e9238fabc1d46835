package clusterlimit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
)

// cluster is three servers. The routes of the first go through proxies.
type cluster struct {
	urls   []string // of the clients
	routes []*proxy
}

// freePort returns a port below the ephemeral ones.
func freePort(t *testing.T) int {
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().(*net.TCPAddr).Port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c, servers := &cluster{}, []*server.Server{}
	ports := []int{freePort(t), freePort(t), freePort(t)}
	addr := func(i int) string { return fmt.Sprint("127.0.0.1:", ports[i]) }
	advertised := []string{"127.0.0.1:1"} // nobody connects to the first: it connects to the others
	for i := 1; i < 3; i++ {
		p := newProxy(t, addr(i))
		c.routes = append(c.routes, p)
		advertised = append(advertised, p.Addr().String())
	}
	peers := [][]string{{advertised[1], advertised[2]}, {addr(2)}, {addr(1)}}
	for i, port := range ports {
		o := &server.Options{
			ServerName: fmt.Sprint("node", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "cut", Host: "127.0.0.1", Port: port, Advertise: advertised[i]},
		}
		for _, peer := range peers[i] {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: peer})
		}
		s := start(t, o)
		servers, c.urls = append(servers, s), append(c.urls, s.ClientURL())
	}
	conn, err := nats.Connect(strings.Join(c.urls, ","), nats.Timeout(await.Limit)) // the default of two seconds may be too short
	check(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	check(t, err)
	await.True(t, "a leader that knows all servers", func() bool {
		return slices.ContainsFunc(servers, func(s *server.Server) bool { return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3 })
	})
	if _, err := js.CreateKeyValue(await.Context(t, "a bucket"), jetstream.KeyValueConfig{Bucket: "spillway", Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	return c
}

// A server that is cut off from its cluster keeps its clients: a member failed for as long as that
// lasted, with two other addresses in its URL.
func TestAMemberLeavesAServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var log logtest.Log
	var m *Member
	await.True(t, "a member on the first server", func() bool {
		var err error
		if m, err = joined(await.Context(t, "a lease"), Config{URL: strings.Join(c.urls, ","), Concurrency: 8, Lease: 2 * time.Second, FailClosed: true, Logger: log.Logger()}); err != nil {
			t.Fatal(err)
		}
		if m.conn.ConnectedUrl() == c.urls[0] {
			return true
		}
		_ = m.Close(t.Context())
		return false
	})
	defer m.Close(t.Context())
	for _, p := range c.routes {
		p.set(true)
	}
	await.True(t, "it says that the server does not answer", func() bool {
		err := m.Stats().Err
		return err != nil && strings.Contains(err.Error(), "has not answered for")
	})
	await.True(t, "it has its lease again", func() bool { s := m.Stats(); return s.Standing == "held" && s.Err == nil })
	if line := log.With("connects to another"); !strings.Contains(line, "level=WARN") || !strings.Contains(line, c.urls[0]) {
		t.Errorf("the log says %q", line)
	}
	// A member that starts on the server that is cut off goes on to another too.
	for range 3 {
		late, err := Join(await.Context(t, "a lease"), Config{URL: strings.Join(c.urls, ",")})
		check(t, err)
		defer late.Close(t.Context())
	}
}

// The pause between reconnects doubles up to its bound, and starts anew with an answer.
func TestWhenAServerIsLeft(t *testing.T) {
	var l link
	var left []time.Duration
	for now := time.Duration(0); now < 300*time.Second; now += time.Second {
		l.failed(now, true)
		if l.leave(now) {
			left = append(left, now/time.Second)
		}
	}
	if got := fmt.Sprint(left); got != "[5ns 15ns 35ns 75ns 155ns 235ns]" {
		t.Errorf("left after %s", got)
	}
	l.answered()
	if l.failed(400*time.Second, true); l.leave(404*time.Second) || !l.leave(405*time.Second) {
		t.Error("not anew after an answer")
	}
	l.answered()
	l.failed(500*time.Second, false) // there is no connection that could be left
	if l.leave(510 * time.Second) {
		t.Error("left without a connection")
	}
	l.failed(511*time.Second, true)
	if l.leave(515*time.Second) || !l.leave(516*time.Second) {
		t.Error("the time without a connection counts")
	}
}

// A server without a majority may answer for the bucket, and still answers no write.
func TestOpeningTheBucketIsNoAnswer(t *testing.T) {
	cfg, err := Config{URL: engine(t)}.check()
	check(t, err)
	m := newMember(cfg)
	if m.conn, err = connect(await.Context(t, "a connection"), cfg); err != nil {
		t.Fatal(err)
	}
	defer m.disconnect()
	m.link.failed(0, true)
	if err := m.open(await.Context(t, "a bucket")); err != nil || m.link.standing != linkUnanswered {
		t.Errorf("%v, %+v", err, m.link)
	}
}

// The client library closes a connection for good after errors that it does not know.
func TestAMemberOpensAConnectionThatWasClosedForGood(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	m := join(t, Config{URL: engine(t), Rate: 10, FailClosed: true, Logger: log.Logger()})
	before := m.reading().renewals
	m.mu.Lock()
	conn := m.conn
	m.mu.Unlock()
	conn.Close()
	await.True(t, "it renews", func() bool { s := m.reading(); return s.renewals > before+2 && s.Standing == "held" && s.Err == nil })
	if line := log.With("ended the connection for good"); line == "" {
		t.Error("the log does not say so")
	}
}

// With a duplicate_window below two minutes no bucket could be created.
func TestABucketKeepsToTheLimitsOfTheServer(t *testing.T) {
	t.Parallel()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}
	o.JetStreamLimits.Duplicates = time.Minute
	if s := join(t, Config{URL: start(t, o).ClientURL(), Concurrency: 3}).Stats(); s.Slots != 3 {
		t.Errorf("%+v", s)
	}
}

// The bucket is as the client library makes one, but for the window of duplicates.
func TestTheBucketIsAsTheLibraryMakesIt(t *testing.T) {
	m := join(t, Config{URL: engine(t)})
	js, err := jetstream.New(m.conn)
	check(t, err)
	ctx := await.Context(t, "an answer")
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "other", Description: "budgets shared by replicas", Storage: jetstream.FileStorage}); err != nil {
		t.Fatal(err)
	}
	config := func(bucket string) jetstream.StreamConfig {
		s, err := js.Stream(ctx, "KV_"+bucket)
		check(t, err)
		return s.CachedInfo().Config
	}
	ours, theirs := config("spillway"), config("other")
	ours.Name, ours.Subjects = theirs.Name, theirs.Subjects
	if got, want := fmt.Sprintf("%+v", ours), fmt.Sprintf("%+v", theirs); got != want {
		t.Errorf("%s\nis not\n%s", got, want)
	}
}
