package ladder

import "github.com/spillway-go/spillway/lab/contestant"

// The roles of the program of servers and client. RoleServer takes a Server and is
// ready with its Where; RoleClient takes a ClientJob and returns a Measured for each
// server.
const (
	RoleServer = "ladder-server"
	RoleClient = "ladder-client"
)

// spec starts a role of the program.
func (c Config) spec(role string, input any) contestant.Spec {
	return contestant.Spec{Program: "ladder", Role: role, Input: input, MemoryCap: c.MemoryCap}
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

// Names of contestants and of what lies between them.
const (
	slow        = "small server, no saving"
	fast        = "small server, every saving"
	fastWithout = "fasthttp without its savings"

	restHigh = NetHTTP + " − " + slow
	restLow  = fast + " − " + FastHTTP
)

// bare are the savings that fasthttp can be served without; its parser can not
// be taken out. Its answers are written as they are.
var bare = []Rungs{State, Bytes, Workers, Unwatched}

// Server says which server to start.
type Server struct {
	Kind string // "" for the small server
	Save Rungs  // of FastHTTP and the small server
}

// Where is the addresses of a server.
type Where struct{ Addr, Control string }

// ClientJob is the input of the client: all servers, in turns.
type ClientJob struct {
	Servers          []Where
	Conns, PerConn   int
	Requests, Rounds int
	Seed             uint64
}

// Measured is the cost of the requests to one server, one value for each round.
type Measured struct {
	CPU      []float64 // microseconds a request
	Mallocs  []float64 // a request
	Bytes    []float64
	Requests int
	Seconds  float64 // of processor time, all in all
}
