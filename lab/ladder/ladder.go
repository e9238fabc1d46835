// Package ladder is experiment G7: what fasthttp's lead over net/http consists of. It
// measures the processor time of servers for a request, from raw reads and writes up to
// net/http, and climbs from one to the other on a small server whose savings can be
// switched one by one. Servers and client are the program lab/contestants/ladder.
package ladder

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `fasthttp needs less processor time for a request than net/http. Which of its savings account for that? Every server answers the same request on the same number of connections. All of them take turns in one process, one at a time and in random order, and the client is another process; what counts is the processor time of the servers' process, user and system, divided by the requests.

All servers: net/http, net/http whose handler reads a header a hundred times more, and fasthttp.

The ladder between them is a small HTTP/1.1 server made for this experiment, with six switches: pooled state (request and answer are reused), byte API (against *http.Request, http.Header and url.URL), own parser (against http.ReadRequest), connection workers (against a goroutine for each connection), no background read (against reading ahead to notice that the client left, a context to cancel, and every deadline that net/http sets), one write buffer (against two, with sorted fields and the date formatted for each answer).

What a switch is worth depends on the others. So the small server runs with every set of them, and a saving's share of the lead is what it takes off in the mean of all orders in which they can be switched on. net/http, fasthttp and both ends of the small server run twice: what a switch that changes nothing seems to be worth is noise.

A table lists all steps from net/http down to fasthttp, which add up to 100 %: the shares, and what the small server leaves at either end. What the small server leaves, whatever its sign, counts as not explained. Allocations for a request of the small server and of fasthttp, exactly and without a network, are shown by go test ./lab/contestants/ladder -run '^$' -bench Rung -benchmem.`

// Config is what a user may set.
type Config struct {
	Connections int           `group:"Size" default:"32" least:"1" most:"2048" help:"Keep-alive connections; each sends a request as soon as it has the last answer."`
	Rounds      int           `group:"Size" default:"25" quick:"5" whole:"3" least:"1" help:"How often every server has its turn in each repeat. Short turns and many of them even out what else the machine does."`
	Time        time.Duration `group:"Size" default:"10ms" quick:"3ms" whole:"4500us" above:"0s" help:"Processor time of a turn, without its preparation."`
	MemoryCap   int           `default:"512" placeholder:"MIB" least:"0" help:"Servers that need more memory than that are killed; 0 sets no limit."`
}

func (c Config) spec(role string, input any) contestant.Spec {
	return contestant.Spec{Program: "ladder", Role: role, Input: input, MemoryCap: uint64(c.MemoryCap) << 20}
}

func plan(c Config) (experiment.Plan, error) {
	var keys []ledger.Key
	game := Game{Config: turns.Config{Rounds: c.Rounds, Time: c.Time, Least: c.Connections}, Connections: c.Connections}
	for _, e := range entries() {
		keys, game.Servers = append(keys, e.Key), append(game.Servers, e.Server)
	}
	const between = 3 * time.Millisecond // turns, for the connections and a collection
	return experiment.Plan{Programs: []contestant.Spec{c.spec(RolePlay, nil)}, Groups: []experiment.Group{{
		Keys: keys, Label: fmt.Sprintf("%d servers in turns", len(keys)), Expect: time.Duration(len(keys)*(c.Rounds+4)) * (c.Time*3/2 + between),
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			game.Seed = t.Seed
			client, err := contestant.Start(ctx, c.spec(RoleClient, nil), &game.Client)
			if err != nil {
				return nil, err
			}
			defer func() { _, _ = client.Stop(ctx, nil) }() // the servers have the figures
			micros := func(r turns.Reading) float64 { return turns.AllNanos(r) / 1e3 }
			runs, err := experiment.Play(ctx, keys, c.spec(RolePlay, game), experiment.Figures{"cpu_us": micros, "allocs": turns.Mallocs, "bytes": turns.Bytes})
			if err != nil {
				return nil, err
			}
			divide(keys, runs)
			return runs, nil
		},
	}}}, nil
}

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
	turns.Config
	Client      string // its address
	Servers     []Server
	Connections int
}

// Server says which server to start.
type Server struct {
	Kind string // "" for the small server
	Save Rungs  // of the small server
	Asks string // another request than the usual one: HostAlone or Posted, of NetHTTP and FastHTTP
}

// The requests. The usual one is a GET with seven fields and a query.
const (
	usual     = "a GET with seven fields and a query"
	HostAlone = "a GET with Host alone"
	Posted    = "a POST with a body"
)

// Servers, those with capital letters as kinds, and set-ups.
const (
	NetHTTP        = "net/http"
	NetHTTPReads   = "net/http, a header read a hundred times more"
	FastHTTP       = "fasthttp"
	slow           = "small server, no saving"
	fast           = "small server, every saving"
	allServers     = "all servers"
	addedToNone    = "each saving added to none"
	removedFromAll = "each saving taken from all"
	others         = "every other set of savings"
)

// twice are the servers with a twin: what everything else is compared with.
var twice = []string{NetHTTP, FastHTTP, slow, fast}

// entry is a cell and its server.
type entry struct {
	ledger.Key
	Server
}

// entries are all servers.
func entries() []entry {
	all := []entry{
		{named(NetHTTP), Server{Kind: NetHTTP}}, {readAgain, Server{Kind: NetHTTPReads}}, {named(FastHTTP), Server{Kind: FastHTTP}},
	}
	for _, request := range []string{HostAlone, Posted} {
		all = append(all, entry{asked(NetHTTP, request), Server{Kind: NetHTTP, Asks: request}}, entry{asked(FastHTTP, request), Server{Kind: FastHTTP, Asks: request}})
	}
	for save := range AllRungs + 1 {
		all = append(all, entry{small(save), Server{Save: save}})
	}
	for _, e := range slices.Clone(all) {
		if e.Twin = e.Asks == "" && slices.Contains(twice, e.Pattern); e.Twin {
			all = append(all, e)
		}
	}
	return all
}

func cell(setup, name string) ledger.Key {
	return ledger.Key{Setup: setup, Load: "keep-alive", Pattern: name}
}

// readAgain is the cell of a handler that reads a header MoreReads times more.
var readAgain = cell("a header read again and again", NetHTTPReads)

// MoreReads is how often the handler of NetHTTPReads reads a header beyond the others.
const MoreReads = 100

// asked is the cell of a server that is sent another request than the usual one.
func asked(name, request string) ledger.Key { return cell(request, name) }

func named(name string) ledger.Key { return cell(allServers, name) }

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
