// Package redistest gives tests the real Redis.
package redistest

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
)

// Addr returns host and port of the Redis of the tests: SPILLWAY_REDIS, or the
// usual port of this machine. Without one the test is skipped, unless
// SPILLWAY_REQUIRE says that there has to be one.
func Addr(t testing.TB) string {
	t.Helper()
	addr := cmp.Or(os.Getenv("SPILLWAY_REDIS"), "127.0.0.1:6379")
	err := ping(addr)
	if err == nil {
		return addr
	}
	missing := fmt.Sprintf("no Redis on %s (%v): start one (redis-server --save ''), or name another by SPILLWAY_REDIS=host:port", addr, err)
	if slices.Contains(strings.Split(os.Getenv("SPILLWAY_REQUIRE"), ","), "redis") {
		t.Fatal(missing)
	}
	t.Skip("SKIPPED, the cache was not tried on a real Redis: " + missing)
	return ""
}

func ping(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 30*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = errors.New("what listens there is no open Redis")
	}
	return err
}

// Patient is for the end of a URL: the client waits longer than a busy machine may take, in
// place of a quarter of a second.
const Patient = "?dial_timeout=20s&read_timeout=20s&write_timeout=20s&pool_timeout=20s"

// Client returns a client of its own, to look behind the cache.
func Client(t testing.TB, addr string) *client.Client {
	c := client.NewClient(&client.Options{Addr: addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// Prefix returns a prefix of keys that no other test has. What is below it is
// removed at the end.
func Prefix(t testing.TB, addr string) string {
	prefix := "patientapi-test:" + rand.Text() + ":"
	t.Cleanup(func() { Remove(t, addr, prefix) })
	return prefix
}

// Remove removes all keys below prefix.
func Remove(t testing.TB, addr, prefix string) {
	t.Helper()
	c := client.NewClient(&client.Options{Addr: addr})
	defer c.Close()
	ctx := context.Background() // that of the test has ended
	keys := c.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		assert.NoError(t, c.Del(ctx, keys.Val()).Err())
	}
	assert.NoError(t, keys.Err())
}
