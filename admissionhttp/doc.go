// Package admissionhttp puts a limiter in front of an http.Handler. Before the body of a request is
// read, the request is admitted, waits a bounded time, or is answered 503 (429 for one caller's
// quota) with a reason and Retry-After.
//
//	http.ListenAndServe(addr, admissionhttp.Protect(handler))
//
// Start with SPILLWAY_MODE=dryrun: all is decided and counted, nothing is refused. [New] takes your
// own limiter and all settings for requests.
//
// # Order of middleware
//
// request id, authentication, audit, admission, binding, handler. In this order a refused request
// has an id and is on record, a caller is known before its share is counted, and no body is read
// for a refused request. Recovery from panics may stand on either side. docs/operate/serving.md has
// the reasons, and examples/frameworks has the order in chi, gin, echo and a reverse proxy.
//
// If the middleware is inside of http.TimeoutHandler, the slot is held until the handler returns,
// even long after the timeout. If it is outside, the middleware returns at the timeout while the
// handler still runs: set [Config.Hold] and let the handler call [Hold].
//
// Put a limit on the length of bodies outside: [http.MaxBytesHandler]. A handler inside can use
// http.MaxBytesReader, which stops reading at the limit. But MaxBytesReader cannot reach through
// other writers to make net/http close the connection; net/http then reads up to 256 KiB more of
// the body. Alternatively, set the header Connection to close with the 413.
//
// Put CORS outside too. Without Access-Control-Allow-Origin a browser hides a refusal from its
// page, which then sees a network failure. A refused preflight fails the actual request. Answer
// preflights before admission, and let pages see the headers by Access-Control-Expose-Headers:
// Retry-After, Spillway-Reason.
//
// A circuit breaker inside answers 503 without Retry-After. Such an answer is no sample. A circuit
// breaker outside must not count refusals as failures: refusals carry the header Spillway-Reason.
//
// net/http does not notice that a client has left while the body of its request is unread. The wait
// of such a request is bounded by its deadline and limiter.Config.MaxWait. A proxy that forwards
// Spillway-Priority must remove it from requests of untrusted callers.
//
// # Clients that take long
//
// While a handler waits for its client, in a Read of the body, a Write or a Flush, nothing scarce is
// used: the permit is paused, the time is no part of the sample, and others get the slot if they
// want it. That holds however the client is slow, in HTTP/1 and 2, also for a body that the
// transport of a reverse proxy reads, and for files. net/http keeps the first kilobytes of an
// answer, so a short answer waits for nobody. A handler that fills a buffer of its own, such as
// that of http.TimeoutHandler, waits outside of this package, without a slot.
//
// A client that neither sends nor takes anything for [Config.ClientTimeout] is gone: the read or
// write fails. http.Server.ReadTimeout and WriteTimeout apply besides; they end slow clients too.
//
// Requests that are known to take long, such as polls, are named by [Config.Long] and hold no slot
// at all.
//
// # Calls inside calls
//
// A request holds its slot until the handler returns, but for its waits for the client. A handler
// may acquire from the same limiter for its own calls, or call a service that calls this service
// back. Such a handler waits for slots that only requests like its own hold; under load the
// throughput collapses. Use a separate limiter for the calls of handlers. Calls back from inside
// need one too: a second middleware, on their own routes or chosen by [Config.Class].
//
// Middlewares over one limiter may be nested, as admit(mux) with admit(handler) in the mux: a request
// takes one slot, and the inner middleware passes the request on, whatever its settings. The inner one
// finds the outer one through the ResponseWriter (Unwrap). If code between hides the writer, as
// http.TimeoutHandler does, it is found through the request's context, if the outer middleware has
// Deadlines or Hold. Otherwise the request takes two slots.
//
// # Samples for the limiter
//
// An answer below 500 is a latency sample, apart from 408 and 429. 503 with Retry-After is a sign
// of overload in a service below, unless its Spillway-Reason is deadline_too_close or budget. 504,
// or a deadline that passed, is a lower bound of the latency, and so is the time after which a
// client left. All other answers, panics and http.ErrAbortHandler are no sample; [Config.Outcome]
// can decide otherwise. The slot is freed in every case.
//
// Requests of [Config.Long] are counted apart and hold no slot. Upgraded connections and server-sent
// events hold a slot until they prove to be streams: by status 101, by Hijack, or by a flush of a
// streaming answer. A browser never reconnects an EventSource that was
// answered 503, and does not report why it failed. The page has to make another EventSource, after
// a pause that it chooses.
//
// # Kinds
//
// The limiter predicts how long a request will take from others of its kind, and compares requests
// of one kind only with each other. The kind is the route; [Config.Kind] or spillway.WithKind can
// set another.
//
// # Stopping
//
// Signal that no traffic is wanted ([Ready] with an atomic.Bool), wait until load balancers have
// noticed, tell streams to end, call Limiter.Drain, then http.Server.Shutdown:
//
//	up.Store(false)
//	time.Sleep(propagation)
//	stopStreams()
//	draining, cancel := context.WithTimeout(ctx, most)
//	defer cancel()
//	err := errors.Join(lim.Drain(draining), server.Shutdown(ctx))
//
// Requests that come meanwhile are refused with Connection: close, so that clients use another
// connection. In HTTP/2 net/http sends a GOAWAY for this header.
//
// Drain waits for parked, paused and long work too. A handler that hangs lets Drain wait until its
// context ends, so Shutdown has a later end. What still runs then ends with the process.
//
// Drain first: Drain serves the waiting requests and refuses others with 503 while the listener
// still answers. Shutdown then waits for the last bytes.
//
// # Cost
//
// An admitted request costs one allocation, also with a body or a long answer, and a refused
// request none. Around an http.ServeMux, a route with wildcards allocates their values a second
// time. "go test ./admissionhttp -run Alloc" tests these numbers. "go test ./admissionhttp -run '^$'
// -bench Serve" prints the times, also with deadlines and fair shares.
//
// # Pitfalls
//
//   - The limiter of [Protect] cannot be drained or watched from outside. [New] with a
//     [Config.Limiter] has no such restriction.
//   - The pages of [DebugHandler] have no access control. Serve them on a listener that only
//     operators reach.
//   - Behind a proxy all requests have one caller, the proxy, unless [Config.Caller] identifies
//     callers in another way.
//
// # When not to use it
//
// A limiter does not enforce quotas of requests per second. A service far below its capacity needs
// no admission, and neither does a service behind a proxy that already sheds its load.
package admissionhttp
