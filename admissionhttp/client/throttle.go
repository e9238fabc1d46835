package client

import (
	"container/list"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
)

// throttle refuses requests that a server would most likely refuse. It is the
// adaptive throttling at the client of "Handling Overload" in Site Reliability
// Engineering (Beyer and others, O'Reilly 2016, chapter 21): with requests tried
// and accepts among them within a window, the next one is refused with the probability
//
//	(requests - tolerance * accepts) / (requests + 1)
//
// Requests that are refused here count as tried, so that the share that is sent
// falls as long as the server accepts nothing. There are four differences. The first
// few refusals are free, so that one of them does not throttle a client that asks
// once a minute. The window is ten seconds instead of two minutes, and the
// probability at most 0.95, so that a client recovers within half a minute of the
// server. And an attempt counts when it ends, so that slow answers are no
// refusals. As there, each priority counts for itself.
type throttle struct {
	tolerance float64
	maxHosts  int
	base      time.Time

	mu     sync.Mutex
	hosts  map[hostKey]*list.Element
	recent *list.List // of *host, the latest asked first
}

const (
	free    = 5  // refusals within the window that throttle nothing
	buckets = 10 // of the window
	width   = time.Second
	most    = 0.95 // of the requests are refused
	classes = int(spillway.Critical-spillway.Low) + 1

	longestHost = 255 // names in DNS are not longer
)

type hostKey struct{ scheme, host string }

type host struct {
	key hostKey
	of  [classes]counter
}

// counter holds what was tried and accepted within the window, for one host and
// priority. It stays valid for requests under way when its host is forgotten.
type counter struct {
	current int64 // number of the bucket that is counted in, from the start
	bucket  [buckets]struct{ tried, accepted int64 }
}

func newThrottle(tolerance float64, maxHosts int) throttle {
	return throttle{tolerance: tolerance, maxHosts: maxHosts, base: time.Now(), hosts: map[hostKey]*list.Element{}, recent: list.New()}
}

// counter returns what is known of the host of u for a priority.
func (t *throttle) counter(u *url.URL, p spillway.Priority) *counter {
	var key hostKey
	if u != nil {
		key = hostKey{u.Scheme, u.Host[:min(len(u.Host), longestHost)]}
	}
	class := min(max(int(p-spillway.Low), 0), classes-1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.hosts[key]; ok {
		t.recent.MoveToFront(e)
		return &e.Value.(*host).of[class]
	}
	if len(t.hosts) >= t.maxHosts {
		oldest := t.recent.Back()
		delete(t.hosts, oldest.Value.(*host).key)
		t.recent.Remove(oldest)
	}
	key = hostKey{strings.Clone(key.scheme), strings.Clone(key.host)} // not the whole URL
	h := &host{key: key}
	t.hosts[key] = t.recent.PushFront(h)
	return &h.of[class]
}

// refuses reports whether a request should not be sent; it counts one that should
// not. Random is from 0 to less than 1.
func (t *throttle) refuses(c *counter, now time.Time, random float64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.turn(t.bucketAt(now))
	var tried, accepted int64
	for _, b := range c.bucket {
		tried += b.tried
		accepted += b.accepted
	}
	excess := float64(tried-free) - t.tolerance*float64(accepted)
	if !(random < min(excess/float64(tried+1), most)) {
		return false
	}
	c.bucket[c.current%buckets].tried++
	return true
}

// answered counts an attempt that has ended, and whether the server accepted it.
func (t *throttle) answered(c *counter, now time.Time, accepted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.turn(t.bucketAt(now))
	b := &c.bucket[c.current%buckets]
	b.tried++
	if accepted {
		b.accepted++
	}
}

func (t *throttle) bucketAt(now time.Time) int64 { return int64(now.Sub(t.base) / width) }

// turn empties the buckets that have passed out of the window.
func (c *counter) turn(to int64) {
	if to-c.current >= buckets {
		c.bucket = [buckets]struct{ tried, accepted int64 }{}
	} else {
		for n := c.current + 1; n <= to; n++ {
			c.bucket[n%buckets] = struct{ tried, accepted int64 }{}
		}
	}
	c.current = max(c.current, to)
}
