package fleet

import (
	"fmt"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

func real(when string) ledger.Figure {
	return ledger.Extra(when+"_real", fmt.Sprintf("share of the clients that the processes answered %s the trouble", when))
}

func simulated(when string) ledger.Figure {
	return ledger.Extra(when+"_sim", fmt.Sprintf("share of the clients that the simulation answered %s the trouble", when))
}

// asked leaves a goal open if the session is too short for what it speaks of.
func asked(pattern string, value ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) []ledger.Case {
		k := key(pattern)
		c := ledger.Case{Setup: pattern, Value: value}
		if e.ParamOf(k, "trouble") < 15 || e.ParamOf(k, "after") < 15 {
			c.Open = "The goal speaks of a trouble of fifteen seconds and of fifteen seconds after it: run it without --quick."
		}
		return []ledger.Case{c}
	}
}

// agree and apart compare the simulation with the processes. Where next to nothing is
// answered a ratio of the two says nothing.
func agree(when string) ledger.Part {
	return ledger.Part{
		ID: "protected-" + when, Title: fmt.Sprintf("%s the trouble the protected fleet answers what the simulation says, within 10 %%", when),
		Subject: "answered in the simulation/in the processes, protected, " + when + " the trouble", Unit: "x", Rule: judge.Between(.9, 1.1), Spread: .02,
		Cases: asked(protected, ledger.Of(key(protected), simulated(when)).Over(ledger.Of(key(protected), real(when)))),
	}
}

func apart(when string) ledger.Part {
	return ledger.Part{
		ID: "unprotected-" + when, Title: fmt.Sprintf("%s the trouble the unprotected fleet answers what the simulation says, within 10 %% of the clients", when),
		Subject: "answered in the simulation − in the processes, unprotected, " + when + " the trouble", Unit: "%", Rule: judge.Between(-10, 10), Spread: .5, Min: -100, Max: 100,
		Cases: asked(unprotected, ledger.Of(key(unprotected), simulated(when)).Minus(ledger.Of(key(unprotected), real(when)))),
	}
}

var family = ledger.Family{
	ID:    "fleet",
	Title: "A fleet of processes in a storm of retries does what the simulator says",
	Claims: []ledger.Claim{
		{ID: "fleet-1", Goal: true, Title: "the simulator predicts the goodput of a fleet of processes within 10 %, during a trouble and after it", Parts: []ledger.Part{
			agree("during"), agree("after"), apart("during"), apart("after"),
		}},
		{ID: "fleet-2", Goal: true, Title: "fifteen bad seconds keep an unprotected fleet down, and a protected one is back in five seconds", Parts: []ledger.Part{
			{ID: "unprotected", Title: "the unprotected fleet answers less than a fifth of the clients from five seconds after the trouble on", Subject: "share of the clients answered after the trouble, without protection",
				Unit: "%", Kind: judge.Every, Rule: judge.Below(20), Spread: .5, Max: 100, Cases: asked(unprotected, ledger.Of(key(unprotected), real("after")))},
			{ID: "protected", Title: "the protected fleet answers over 95 % of the clients from five seconds after the trouble on", Subject: "share of the clients answered after the trouble, with protection",
				Unit: "%", Kind: judge.Every, Rule: judge.Above(95), Spread: .5, Cases: asked(protected, ledger.Of(key(protected), real("after")))},
		}},
	},
	Columns: []ledger.Column{
		{Key: "before_real", Name: "answered before the trouble, %", Format: "decimals"}, {Key: "before_sim", Name: "simulated", Format: "decimals"},
		{Key: "during_real", Name: "during it, %", Format: "decimals"}, {Key: "during_sim", Name: "simulated", Format: "decimals"},
		{Key: "after_real", Name: "from 5 s after it, %", Format: "decimals"}, {Key: "after_sim", Name: "simulated", Format: "decimals"},
	},
	Method: []ledger.Note{
		{Title: "The processes", Text: "Each replica is a process with net/http and a database with a knee: ten queries at a time run at full speed, 20 to 60 ms each, and with c of them the total falls to √(10/c). A query ends when its client leaves. The protected replica has admissionhttp with limiter.Config{}. Half of the capacity is sent by an open loop with Poisson arrivals of 200 clients, in this process, each time to the better of two random replicas, by the requests that they have not answered. A client waits a second, and tries three times with a random pause of up to 100 and 200 ms; in front of the protected fleet each has a retry budget of one for ten successes."},
		{Title: "The simulation", Text: "It has the same numbers, and nothing is fitted to the measurement. The figure is the mean of ten simulations with draws of their own, as the processes have theirs. A good answer counts when it comes, as a share of the clients that come in the same time."},
		{Title: "Agreement", Text: "Of the protected fleet the ratio of the two shares is judged. An unprotected one answers next to nothing, and the ratio of two numbers near zero says nothing: there it is the difference, in per cent of the clients."},
		{Title: "Late clients", Text: "A run whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, it does not count."},
	},
}
