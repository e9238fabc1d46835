package jetstream

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/jobqueue"
)

// island starts a cluster of three nodes and returns their URLs. cut cuts the first node off from
// the two others. Its clients keep their connections.
//
// Each node is known by the address of a proxy in front of it. The second and the third node also
// have a route without a proxy, which stays.
func island(t *testing.T) (urls []string, cut func()) {
	var ends [3]*proxy
	var nodes [3]*server.Server
	for i := range ends {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		l.Close() // the node takes this port
		ends[i] = newProxy(t, "nats://"+l.Addr().String())
	}
	route := func(i int, address string, to ...string) {
		o := &server.Options{
			ServerName: fmt.Sprint("node-", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
			NoSigs: true, NoLog: true, SyncAlways: true, Routes: server.RoutesFromStr(strings.Join(to, ",")),
		}
		_, port, _ := net.SplitHostPort(ends[i].server)
		o.Cluster.Name, o.Cluster.Host, o.Cluster.Advertise = "test", "127.0.0.1", strings.TrimPrefix(address, "nats://")
		_, _ = fmt.Sscan(port, &o.Cluster.Port)
		nodes[i] = node(t, o)
	}
	route(1, ends[1].url())
	route(2, ends[2].url(), "nats://"+ends[1].server)
	await.True(t, "the route without a proxy is there", func() bool { return nodes[1].NumRoutes() > 0 && nodes[2].NumRoutes() > 0 })
	route(0, ends[0].url(), ends[1].url(), ends[2].url())
	await.True(t, "the nodes are a cluster", func() bool {
		for _, n := range nodes {
			if !n.JetStreamIsCurrent() {
				return false
			}
		}
		return len(nodes[0].JetStreamClusterPeers()) == 3 || len(nodes[1].JetStreamClusterPeers()) == 3 || len(nodes[2].JetStreamClusterPeers()) == 3
	})
	for _, n := range nodes {
		urls = append(urls, n.ClientURL())
	}
	return urls, func() {
		for _, p := range ends {
			p.close()
		}
		await.True(t, "the first node is alone", func() bool { return nodes[0].NumRoutes() == 0 })
	}
}

// A server that is cut off from its cluster keeps its clients. Their processes failed for as long
// as that lasted, though two other addresses were in their URL.
func TestAnotherServerIsTriedWhenOneIsCutOff(t *testing.T) {
	t.Parallel()
	urls, cut := island(t)
	var log logtest.Log
	var queues [2]*queue // one works, and both enqueue
	for i := range queues {
		await.True(t, "a queue at the first server", func() bool { // a slow machine is silent, too
			queues[i] = open(t, Config{
				URL: strings.Join(urls, ","), Options: []nats.Option{nats.DontRandomize()}, Replicas: 3, MaxInFlight: 4, AckWait: 5 * time.Second, Wait: 5 * time.Second, Logger: log.Logger(),
			})
			if queues[i].nc.ConnectedServerName() == "node-0" {
				return true
			}
			_ = queues[i].Close()
			return false
		})
	}
	work(t, queues[0], func(context.Context, *jobqueue.Delivery) error { return nil })
	enqueued := func(q *queue, key string) {
		await.True(t, key+" is stored", func() bool {
			_, err := q.Enqueue(within(t), jobqueue.Job{Key: key})
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
	}
	enqueued(queues[0], "before")
	await.True(t, "a job is done", func() bool { return queues[0].counters.done.Load() == 1 })
	cut()
	for i, q := range queues {
		enqueued(q, fmt.Sprint("after ", i))
		if name := q.nc.ConnectedServerName(); name == "node-0" {
			t.Errorf("connected to %s", name)
		}
	}
	await.True(t, "all are done", func() bool { return queues[0].counters.done.Load() == 3 })
	if text := strings.Join(log.Lines(), ""); !strings.Contains(text, "another of its servers is tried") {
		t.Errorf("the log says %s", text)
	}
	// A process that starts now connects to the server that is cut off first.
	open(t, Config{URL: strings.Join(urls, ","), Options: []nats.Option{nats.DontRandomize()}, Wait: 5 * time.Second})
}

// Another server is tried after 5 s of silence, after 10 s more, and so on up to 80 s. An answer
// begins anew.
func TestWhenAnotherServerIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var moves []time.Duration
		alone, connected := false, true
		s := &silence{
			first: silentFor, connected: func() bool { return connected },
			move: func(time.Duration) bool {
				if !alone {
					moves = append(moves, time.Since(start).Round(time.Second))
				}
				return !alone
			},
		}
		defer s.stop()
		// ask makes requests for some time, one after the other.
		ask := func(past time.Duration, how ended) {
			for until := time.Now().Add(past); time.Now().Before(until); {
				s.begin()
				time.Sleep(100 * time.Millisecond)
				s.end(how)
			}
			synctest.Wait()
		}
		check := func(what string, told bool, want ...time.Duration) {
			t.Helper()
			if fmt.Sprint(moves) != fmt.Sprint(want) || s.lasts() != told {
				t.Errorf("%s: moved after %v, not %v, and it is said: %t", what, moves, want, s.lasts())
			}
			moves, start = nil, time.Now()
		}
		ask(time.Minute, withAnswer)
		check("answers", false)
		ask(4*time.Second, withoutAnswer)
		ask(100*time.Millisecond, withAnswer)
		ask(4*time.Second, withoutAnswer)
		s.anew()
		ask(4*time.Second, withoutAnswer)
		check("short silences", false)
		ask(100*time.Millisecond, withAnswer)
		time.Sleep(time.Hour)
		check("no request", false)
		ask(300*time.Second, withoutAnswer)
		check("silence", true, 5*time.Second, 15*time.Second, 35*time.Second, 75*time.Second, 155*time.Second, 235*time.Second)
		ask(100*time.Millisecond, withAnswer)
		start = time.Now()
		ask(20*time.Second, withoutAnswer)
		check("silence again", true, 5*time.Second, 15*time.Second)
		ask(100*time.Millisecond, withAnswer)
		start = time.Now()
		s.begin()
		time.Sleep(6 * time.Second)
		s.end(withoutAnswer)
		check("one request that waits", true, 5*time.Second)
		ask(100*time.Millisecond, withAnswer)
		ask(time.Minute, early)
		check("callers that do not wait", false)
		connected = false
		ask(time.Minute, withoutAnswer)
		check("no connection", false)
		connected, alone = true, true
		ask(time.Minute, withoutAnswer)
		check("a lone server", false)
	})
}

// A lone server that is slow keeps its connection: its answers come.
func TestALoneServerThatIsSilentKeepsItsConnection(t *testing.T) {
	t.Parallel()
	p := newProxy(t, listen(t, t.TempDir(), "127.0.0.1:0").URL())
	q := open(t, Config{URL: p.url()})
	looked := make(chan bool, 100)
	move := q.link.silence.move
	s := &q.link.silence
	s.mu.Lock()
	s.first, s.move = time.Millisecond, func(past time.Duration) bool {
		looked <- move(past)
		return false
	}
	s.mu.Unlock()
	p.set(0, true)
	stored := make(chan error, 1)
	go func() { _, err := q.Enqueue(within(t), jobqueue.Job{}); stored <- err }()
	if await.Receive(t, "the silence is noticed", looked) {
		t.Error("another server was tried")
	}
	p.set(0, false)
	p.cut() // the answer during the silence is lost
	if err := await.Receive(t, "Enqueue returns", stored); err != nil {
		t.Error(err)
	}
}

// Another server leads the jobs or a consumer, and the connection stays. What was asked of the former
// leader is not answered: a call of Enqueue failed after Config.Wait, and no job was taken for as long.
// Here Wait is longer than the test's limit.
func TestANewLeaderIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	q := open(t, Config{URL: strings.Join(cluster(t, 3), ","), Replicas: 3, MaxInFlight: 4, Wait: 10 * await.Limit})
	work(t, q, func(context.Context, *jobqueue.Delivery) error { return nil })
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := q.Enqueue(ctx, jobqueue.Job{}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 6 {
		done := q.counters.done.Load()
		await.True(t, "jobs are done", func() bool { return q.counters.done.Load() > done+20 })
		before := q.clock.now()
		ask := []string{"STREAM.LEADER.STEPDOWN." + q.names.jobs, "CONSUMER.LEADER.STEPDOWN." + q.names.jobs + ".normal", "CONSUMER.LEADER.STEPDOWN." + q.names.slots + "." + slotConsumer}[i%3]
		if reply, err := q.nc.RequestWithContext(within(t), "$JS.API."+ask, nil); err != nil || !strings.Contains(string(reply.Data), `"success":true`) {
			t.Fatalf("%s: %v", ask, err)
		}
		// The new leader may have forgotten what was delivered.
		await.True(t, "it is noticed", func() bool { return q.renewedSince(before) })
		stored := q.counters.enqueued.Load()
		await.True(t, "jobs are stored again", func() bool { return q.counters.enqueued.Load() > stored+20 })
	}
	done := q.counters.done.Load()
	await.True(t, "jobs are done again", func() bool { return q.counters.done.Load() > done+20 })
}
