// Package admissionhttp puts a limiter in front of an http.Handler: a request is
// admitted, waits a bounded time, or is answered 503 (429 for one caller's quota)
// with a reason and Retry-After, before its body is read.
//
//	http.ListenAndServe(addr, admissionhttp.Protect(handler))
//
// Start with SPILLWAY_MODE=dryrun: all is decided and counted, nothing is refused.
// [New] takes a limiter of yours and all that can be said about requests.
//
// # Order of middleware
//
// request id, authentication, audit, admission, binding, handler: what was refused
// has an id and is on record, a caller is known before its share is counted, and
// no body is read for a request that is refused. Recovery from panics may stand on
// either side.
//
// Inside of http.TimeoutHandler the slot is held until the handler returns, also
// long after the timeout. Outside of it the middleware returns at the timeout while
// the handler still runs: set [Config.Hold] and let the handler call [Hold].
//
// A limit on the length of bodies stands outside: [http.MaxBytesHandler]. The
// http.MaxBytesReader of a handler inside stops reading where it should, but it cannot
// reach through other writers to have net/http close the connection; net/http then reads
// up to 256 KiB more of the body. Or set the header Connection to close with the 413.
//
// CORS stands outside too: without Access-Control-Allow-Origin a browser hides a refusal
// from its page, which then sees a failed network, and a preflight that is refused fails
// the request that it was for. Answer preflights there, before admission, and let pages see the
// headers by Access-Control-Expose-Headers: Retry-After, Spillway-Reason.
//
// A circuit breaker inside answers 503 without Retry-After, which is no sample. One
// outside must not count refusals as failures: they carry the header Spillway-Reason.
//
// A body that comes slowly is work that takes long: set http.Server.ReadTimeout.
// net/http does not notice that a client has left while the body of its request is
// unread: what bounds the wait of such a request is its deadline, and Config.MaxWait. A
// proxy that forwards Spillway-Priority removes it from what untrusted callers send.
//
// # Calls inside calls
//
// A request holds its slot until the handler returns. A handler that acquires from the same
// limiter for what it calls, or calls another service that calls this one back, waits for
// slots that only requests like its own hold; under load little is done. Give what the handlers
// call a limiter of its own, and calls back from inside too: a second middleware, on routes
// of their own or chosen by [Config.Class]. The middleware does not mark the context of a request:
// only some requests have one of their own, and a mark would not cross the network.
//
// # What teaches the limiter
//
// An answer below 500 is a latency sample, apart from 408 and 429. 503 with Retry-After is a
// sign of overload below, unless its Spillway-Reason is deadline_too_close. 504, or a
// deadline that passed, is a lower bound of the latency, and so is the time after which a
// client left. All others, panics and http.ErrAbortHandler are no sample;
// [Config.Outcome] decides otherwise. The slot comes back in every case.
//
// Upgraded connections, server-sent events and what [Config.Long] names hold a slot
// until they prove to be streams: by status 101, by Hijack, or by a flush of an
// answer that is one. From then on they are counted apart and hold none.
// A browser never reconnects an EventSource that was answered 503, and does not say why
// it failed: its page has to make another one, after a while of its own choice.
//
// # Kinds
//
// How long a request will take is predicted from others of its kind, and they are compared
// with each other only. The kind is the route; [Config.Kind] or spillway.WithKind say
// another.
//
// # Stopping
//
// Say that no traffic is wanted ([Ready] with a [Switch]), wait until load balancers
// have noticed, tell streams to end, call Limiter.Drain, then http.Server.Shutdown:
//
//	up.Set(false)
//	time.Sleep(propagation)
//	stopStreams()
//	err := errors.Join(lim.Drain(ctx), server.Shutdown(ctx))
//
// What comes meanwhile is told to use another connection: by Connection: close, which
// net/http makes a GOAWAY in HTTP/2.
//
// Drain first, because it serves those that wait already and refuses others with
// 503 while the listener still answers; Shutdown then waits for the last bytes.
package admissionhttp
