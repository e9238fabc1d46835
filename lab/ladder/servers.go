package ladder

import (
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
)

// Rungs is a set of savings. The small server has them switched on or off, each
// independent of the others.
type Rungs uint8

// The savings, each with what replaces it when it is off.
const (
	State     Rungs = 1 << iota // request and response are reused; off: allocated for each request
	Bytes                       // the handler reads bytes; off: *http.Request, http.Header, url.URL
	Parser                      // one pass over the buffer; off: http.ReadRequest
	Workers                     // reused goroutines serve connections; off: a goroutine for each
	Unwatched                   // nothing beside the handler; off: background read, deadline resets, a context to cancel
	OneBuffer                   // the answer is written once, the date cached; off: two buffers and a body writer, sorted, date formatted

	AllRungs = OneBuffer<<1 - 1 // every saving
)

// Ordered is all savings in the order in which the source names them, then the two
// that it does not name.
var Ordered = []Rungs{State, Bytes, Parser, Workers, Unwatched, OneBuffer}

// String names the savings that are on.
func (r Rungs) String() string {
	var names []string
	for i, name := range []string{"pooled state", "byte API", "own parser", "connection workers", "no background read", "one write buffer"} {
		if r.Has(Ordered[i]) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// key names a saving in the figures of a run.
func (r Rungs) key() string { return strings.ReplaceAll(r.String(), " ", "_") + "_us" }

// count is how many savings are on.
func (r Rungs) count() int { return bits.OnesCount8(uint8(r)) }

// Has reports whether these savings are on.
func (r Rungs) Has(these Rungs) bool { return r&these == these }

// The roles of the program lab/contestants/ladder. RolePlay takes a Game and returns the
// readings of each server; RoleClient takes nothing and is ready with its address.
const (
	RolePlay   = "ladder-play"
	RoleClient = "ladder-client"
)

// Game is all servers in turns.
type Game struct {
	Client                       string // its address
	Servers                      []Server
	Connections, PerConn, Rounds int
	Time                         time.Duration
	Seed                         uint64
}

// Server says which server to start.
type Server struct {
	Kind string // "" for the small server
	Save Rungs  // of FastHTTP and the small server
}

// Servers, those with capital letters as kinds, and set-ups.
const (
	Raw            = "raw floor"
	NetHTTP        = "net/http"
	NetHTTPPooled  = "net/http by workers"
	FastHTTP       = "fasthttp"
	fastWithout    = "fasthttp without its savings"
	slow           = "small server, no saving"
	fast           = "small server, every saving"
	allServers     = "all servers"
	addedToNone    = "each saving added to none"
	removedFromAll = "each saving taken from all"
	takenFromFast  = "each saving taken from fasthttp"
	others         = "every other set of savings"
)

// twice are the servers with a twin: what everything else is compared with.
var twice = []string{NetHTTP, FastHTTP, slow, fast}

// entry is a cell and its server.
type entry struct {
	ledger.Key
	server Server
	about  Rungs // the one saving that is added to none or taken from all
}

// entries are all servers. fasthttp's parser can not be taken out, and its answers are
// written as they are.
func entries() []entry {
	all := []entry{
		{named(Raw), Server{Kind: Raw}, 0}, {named(NetHTTP), Server{Kind: NetHTTP}, 0}, {named(NetHTTPPooled), Server{Kind: NetHTTPPooled}, 0},
		{named(FastHTTP), Server{FastHTTP, AllRungs}, 0}, {named(fastWithout), Server{Kind: FastHTTP}, 0},
	}
	for _, r := range []Rungs{State, Bytes, Workers, Unwatched} {
		all = append(all, entry{fastLess(r), Server{FastHTTP, AllRungs &^ r}, r})
	}
	for save := range AllRungs + 1 {
		e := entry{small(save), Server{Save: save}, save}
		if e.Setup == removedFromAll {
			e.about = AllRungs &^ save
		}
		all = append(all, e)
	}
	for _, e := range slices.Clone(all) {
		if e.Twin = slices.Contains(twice, e.Pattern); e.Twin {
			all = append(all, e)
		}
	}
	return all
}

func cell(setup, name string) ledger.Key {
	return ledger.Key{Setup: setup, Load: "keep-alive", Pattern: name}
}
func named(name string) ledger.Key { return cell(allServers, name) }
func fastLess(r Rungs) ledger.Key  { return cell(takenFromFast, r.String()) }

// small is the small server with these savings.
func small(save Rungs) ledger.Key {
	left := AllRungs &^ save
	switch {
	case save == 0:
		return named(slow)
	case left == 0:
		return named(fast)
	case save.count() == 1:
		return cell(addedToNone, save.String())
	case left.count() == 1:
		return cell(removedFromAll, left.String())
	}
	return cell(others, save.String())
}
