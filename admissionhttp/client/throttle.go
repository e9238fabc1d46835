package client

import (
	"container/list"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
)

// throttle refuses requests that a server would most likely refuse. It is the client-side adaptive
// throttling of "Handling Overload" in Site Reliability Engineering (Beyer and others, O'Reilly
// 2016, chapter 21). In the formula, requests is the number of tried requests within a window,
// accepts the number of accepted ones. The next request is refused with the probability
//
//	(requests - tolerance * accepts) / (requests + 1)
//
// Requests refused by throttle count as tried, so that the share of sent requests falls as long as
// the server accepts nothing. There are four differences from the book. The first few refusals are
// free, so that one refusal does not throttle a client with one request a minute. The window is ten
// seconds instead of two minutes. The probability is at most 0.95, so that a client recovers within
// half a minute of the server. An attempt counts when it ends, so that slow answers do not count as
// refusals. As in the book, each priority is counted separately.
type throttle struct {
	tolerance float64
	maxHosts  int
	base      time.Time

	mu     sync.Mutex
	hosts  map[hostKey]*list.Element
	recent *list.List // *host values, the most recently used first
}

const (
	free    = 5  // refusals within the window that throttle nothing
	buckets = 10 // number of buckets in the window
	width   = time.Second
	most    = 0.95 // highest probability of a refusal

	longestHost = 255 // names in DNS are not longer
)

type hostKey struct{ scheme, host string }

type host struct {
	key hostKey
	of  [priority.Levels]counter
}

// counter holds the tried and accepted requests within the window, for one host and priority. It
// stays valid for requests in progress when its host is forgotten.
type counter struct {
	current int64 // number of the current bucket, from the start
	bucket  [buckets]struct{ tried, accepted int64 }
}

func newThrottle(tolerance float64, maxHosts int) throttle {
	return throttle{tolerance: tolerance, maxHosts: maxHosts, base: time.Now(), hosts: map[hostKey]*list.Element{}, recent: list.New()}
}

// counter returns the counter of a priority for the host of u.
func (t *throttle) counter(u *url.URL, p spillway.Priority) *counter {
	var key hostKey
	if u != nil {
		key = hostKey{u.Scheme, u.Host[:min(len(u.Host), longestHost)]}
	}
	class := priority.Level(p)
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
	key = hostKey{strings.Clone(key.scheme), strings.Clone(key.host)} // do not keep the whole URL alive
	h := &host{key: key}
	t.hosts[key] = t.recent.PushFront(h)
	return &h.of[class]
}

// refuses reports whether a request should not be sent, and then counts the request. random is from
// 0 to less than 1.
func (t *throttle) refuses(c *counter, now time.Time, random float64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.advance(t.bucketAt(now))
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
	c.advance(t.bucketAt(now))
	b := &c.bucket[c.current%buckets]
	b.tried++
	if accepted {
		b.accepted++
	}
}

func (t *throttle) bucketAt(now time.Time) int64 { return int64(now.Sub(t.base) / width) }

// advance empties the buckets that have passed out of the window.
func (c *counter) advance(to int64) {
	if to-c.current >= buckets {
		c.bucket = [buckets]struct{ tried, accepted int64 }{}
	} else {
		for n := c.current + 1; n <= to; n++ {
			c.bucket[n%buckets] = struct{ tried, accepted int64 }{}
		}
	}
	c.current = max(c.current, to)
}
