// Package loadgen sends load and measures what becomes of it, per outcome: ok,
// rejected, error and timeout are never mixed.
//
// # Open and closed loops
//
// In a closed loop ([Config.Closed]) a fixed number of clients each wait for an
// answer before they send again. That is how batch jobs and connection pools
// behave, and it finds the most a system can do. It must not be read as what
// users feel: while the target stalls, the clients stand still with it, so a
// second of standstill is one slow request per client instead of every request
// that would have come. This is known as coordinated omission. A request's
// intended start is the end of the one before, which is when it is sent:
// latency counts from the sending.
//
// In an open loop ([Config.Open]) requests start by a [Schedule], as users do
// who know nothing of each other. Latency counts from the intended start, so
// whatever delays a request is in its latency, the generator's own lateness
// included. That share is also kept apart, in [Result.Lag], and
// [Result.GeneratorBound] says when it is too large to trust the rest.
//
// # Cost
//
// A request in a closed loop costs two clock readings and no allocation beyond
// the target's. An open loop adds handing the request to another goroutine, and
// keeps as many goroutines as were ever in flight at one time. On Linux one
// thread sleeps between the starts, precise to some tens of microseconds
// without burning a core. Under testing/synctest the same code runs in virtual
// time.
package loadgen
