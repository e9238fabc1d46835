package main

import "github.com/spillway-go/spillway/lab/ladder"

type labLadderCmd struct {
	Quick bool `env:"SPILLWAY_LAB_LADDER_QUICK" group:"Size" help:"Few and short rounds, about a minute."`

	Connections   int `env:"SPILLWAY_LAB_LADDER_CONNECTIONS" group:"Size" default:"32" help:"Keep-alive connections; each sends a request as soon as it has the last answer."`
	Requests      int `env:"SPILLWAY_LAB_LADDER_REQUESTS" group:"Size" placeholder:"N" help:"Requests to a server in each of its turns; 1024 unless given."`
	Rounds        int `env:"SPILLWAY_LAB_LADDER_ROUNDS" group:"Size" placeholder:"N" help:"Turns of every server in each repeat; 15 unless given. Short turns and many of them even out what else the machine does."`
	PerConnection int `env:"SPILLWAY_LAB_LADDER_PER_CONNECTION" group:"Size" default:"0" placeholder:"N" help:"Replace a connection after this many requests. 0: never. With 1, a goroutine for each connection is one for each request."`

	labRun `embed:"" set:"id=G7" set:"repeats=12" set:"seeds=the order of the turns" set:"subject=a server" set:"memory=512"`
}

// Help teaches.
func (labLadderCmd) Help() string {
	return `fasthttp needs less processor time for a request than net/http. Which of its savings account for that? Each server runs in a process of its own and answers the same request on the same number of connections; what counts is the processor time of its process, user and system, divided by the requests. All servers are started first and take turns in random order.

all servers: raw floor (fixed bytes are read and written; nothing can cost less), net/http, net/http with connections handed to a bounded pool of workers, fasthttp, fasthttp without its savings.

The ladder between them is a small HTTP/1.1 server made for this experiment, with six switches: pooled state (request and answer are reused), byte API (against *http.Request, http.Header and url.URL), own parser (against http.ReadRequest), connection workers (against a goroutine for each connection), no background read (against reading ahead to notice that the client left, a context to cancel, and every deadline that net/http sets), one write buffer (against two, with sorted fields and the date formatted for each answer).

What a switch is worth depends on the others. So the small server runs with every set of them, and a saving's share of the lead is what it takes off in the mean of all orders in which they can be switched on. Four of them are also taken from fasthttp itself. Both ends run twice: what a switch that changes nothing seems to be worth is noise.

A table lists all steps from net/http down to fasthttp, which add up to 100 %: the shares, and what the small server leaves at either end. The lead counts as explained except for the sizes of those two.

Examples:
  spillway lab G7                          some four minutes on two cores
  spillway lab G7 --quick                  a short run
  spillway lab G7 --per-connection 1       what a pool of workers is worth without keep-alive
  spillway lab G7 --repeats 30             narrower intervals
  spillway lab judge spillway-results/…    verdicts again, from the raw runs

Allocations for a request, exactly and without a network: go test ./lab/contestants/ladder -run '^$' -bench Rung -benchmem

` + labEnds
}

func (c *labLadderCmd) Run(env *environment) error {
	config := ladder.Defaults()
	if c.Quick {
		config = ladder.Quick()
	}
	if c.Requests != 0 {
		config.Requests = c.Requests
	}
	if c.Rounds != 0 {
		config.Rounds = c.Rounds
	}
	config.Conns, config.PerConn, config.MemoryCap = c.Connections, c.PerConnection, c.bytes()
	return c.run(env, ladder.Experiment{Config: config})
}
