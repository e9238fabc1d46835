package ladder

import (
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
)

// The roles of the program lab/contestants/ladder. RolePlay takes a Game and returns the
// readings of each server; RoleClient takes nothing and is ready with its address.
const (
	RolePlay   = "ladder-play"
	RoleClient = "ladder-client"
)

// Game is all servers in turns.
type Game struct {
	Client               string // its address
	Servers              []Server
	Connections, PerConn int
	Rounds               int
	Time                 time.Duration
	Seed                 uint64
}

// Server says which server to start.
type Server struct {
	Kind string // "" for the small server
	Save Rungs  // of FastHTTP and the small server
}

// MaxConns bounds the goroutines of every pool of connection workers.
const MaxConns = 4096

// Kinds of servers beside the small one.
const (
	Raw           = "raw floor"
	NetHTTP       = "net/http"
	NetHTTPPooled = "net/http by workers"
	FastHTTP      = "fasthttp"
)

// Names of other contestants.
const (
	slow        = "small server, no saving"
	fast        = "small server, every saving"
	fastWithout = "fasthttp without its savings"
)

// bare are the savings that fasthttp can be served without; its parser can not
// be taken out. Its answers are written as they are.
var bare = []Rungs{State, Bytes, Workers, Unwatched}

// twice are the servers with a twin: what everything else is compared with.
var twice = []string{NetHTTP, FastHTTP, slow, fast}

// entry is a cell and its server.
type entry struct {
	ledger.Key
	server Server
	about  Rungs // the one saving that is added to none or taken from all
}

// entries are all servers.
func entries() []entry {
	all := []entry{
		{named(Raw), Server{Kind: Raw}, 0},
		{named(NetHTTP), Server{Kind: NetHTTP}, 0},
		{named(NetHTTPPooled), Server{Kind: NetHTTPPooled}, Workers},
		{named(FastHTTP), Server{FastHTTP, AllRungs}, 0},
		{named(fastWithout), Server{Kind: FastHTTP}, 0},
	}
	for save := range AllRungs + 1 {
		e := entry{small(save), Server{Save: save}, save}
		if e.Setup == removedFromAll {
			e.about = AllRungs &^ save
		}
		all = append(all, e)
	}
	for _, r := range bare {
		all = append(all, entry{fastLess(r), Server{FastHTTP, AllRungs &^ r}, r})
	}
	for _, e := range slices.Clone(all) {
		if e.Twin = slices.Contains(twice, e.Pattern); e.Twin {
			all = append(all, e)
		}
	}
	return all
}

// Set-ups.
const (
	allServers     = "all servers"
	addedToNone    = "each saving added to none"
	removedFromAll = "each saving taken from all"
	takenFromFast  = "each saving taken from fasthttp"
	others         = "every other set of savings"
)

func cell(setup, name string) ledger.Key {
	return ledger.Key{Setup: setup, Load: "keep-alive", Pattern: name}
}
func named(name string) ledger.Key { return cell(allServers, name) }
func added(r Rungs) ledger.Key     { return small(r) }
func removed(r Rungs) ledger.Key   { return small(AllRungs &^ r) }
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
