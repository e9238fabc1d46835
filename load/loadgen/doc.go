// Package loadgen sends load and measures it per outcome: ok, rejected, error and timeout are never
// mixed.
//
// # Open and closed loops
//
// In a closed loop ([Config.Closed]) a fixed number of clients each wait for an answer before they
// send again. Batch jobs and connection pools behave in this way, and a closed loop finds the
// maximum throughput of a system. It does not show what users experience: while the target stalls,
// the clients stop sending. A stall of one second is then one slow request per client instead of
// every request that would have arrived. This effect is known as coordinated omission. The intended
// start of a request is the end of the client's previous request, and the request is sent at its
// intended start. So latency counts from the sending.
//
// In an open loop ([Config.Open]) requests start by a [Schedule], like those of independent users.
// Latency counts from the intended start, so every delay of a request is in its latency, the
// generator's own delay included. [Result.Lag] records the generator's delay separately, and
// [Result.GeneratorBound] is set when the generator's delay is too large to trust the latencies.
//
// # What is sent
//
// [Constant] and [Poisson] keep a rate. [Even] and [Random] follow a profile of legs: ramps, steps,
// bursts, on and off. [Trace] plays a recording.
//
// [HTTP] is a target for URLs, with [Data] for placeholders in its requests. [Mix] sends several
// kinds of requests by weight, and results report each class apart.
//
// # What outcomes came from
//
// [Result.Causes] counts the statuses and errors behind the outcomes of an HTTP target, and
// [Result.Phases] says how long connecting, the TLS handshake and the first byte took.
// [Result.Void] says that the generator's own machine ran out of files or ports. Such a result says
// nothing about the target.
//
// # Cost
//
// A request in a closed loop costs two clock readings and no allocation beyond those of the target;
// an HTTP target allocates nothing either (go test ./load/loadgen -run Allocates; -run - -bench . for
// the time). An open loop adds handing the request to another goroutine, and keeps as many
// goroutines as were ever in flight at one time. On Linux one thread sleeps between the starts,
// precise to some tens of microseconds without busy-waiting. Under testing/synctest the same code
// runs in virtual time.
//
// The command "spillway lab load" compares the processor time and the memory of "spillway load"
// with those of net/http's client, wrk, hey, vegeta, k6 and oha. On two cores, a request of a
// closed loop took 1.27 times (1.25 - 1.29) the processor time of wrk, and a quarter of that of hey
// and vegeta, in 20 MiB.
//
// The generator takes processors from a service on the same machine; the summary of "spillway load"
// says how much.
//
// # When not to use it
//
// For scripts with logins and pages, use k6.
package loadgen
