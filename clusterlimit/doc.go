// Package clusterlimit combines the limits of many replicas into one budget of concurrency and
// rate. Ten replicas with a limit of 100 each admit 1,000; ten members of a budget of 100 admit
// 100.
//
//	member, err := clusterlimit.Join(ctx, clusterlimit.Config{URL: url, Name: "orders", Concurrency: 100})
//	if err != nil {
//		return err
//	}
//	defer member.Close(context.Background()) // its share is free at once
//	err = member.Bind(lim)                   // from now on lim admits its share at most
//
// Each member has a lease: a number of slots, and a number of admissions a second, for some
// seconds. The member renews its lease several times in that time, and reports its demand in each
// renewal. Members with demand get the amounts that other members do not need. If more members have
// work than there are slots, they take turns. An admission sends no message: it only compares the
// time with the end of the lease. The leases of a budget are one value in a key/value bucket of
// NATS JetStream. Members change the value by compare and set: the engine orders the changes, and
// there is no leader.
//
// The engine is a NATS server with JetStream: nats-server -js, or package jobqueue/embedded with
// Listen. [Config.Away] selects what members do while the engine is away. Stats.Standing and the
// Cause of refusals say whether the lease is held, kept or over. [Metrics] shows this to operators;
// docs/operate/metrics.md says what to alert on.
//
// # How far the total can be exceeded
//
// Let C be the total. At any time the members that hold a lease may together use at most C, for
// these reasons:
//
//   - In each value that the engine accepts, the leases sum to at most C. A member grants itself
//     only free amounts, and the engine accepts a value only if it replaces the value from which it
//     was computed. (After C is lowered, the leases sum to at most the former C until all members
//     have renewed.)
//   - A member uses a gain only after the engine has accepted it. A member stops using an amount
//     before it asks the engine to take the amount back. It gives back only amounts that are not in
//     use.
//   - A lease ends, by the holder's monotonic clock, Config.Lease after the holder sent the
//     renewal. Other members take the lease after 1.25 times Config.Lease without a newer renewal,
//     by their own clocks. They start to count when they read the renewal, which is after it was
//     sent. So the lease is over before others take it, if no clock runs more than a quarter faster
//     than another. Clocks need not show the same time.
//   - A limiter compares the end of the lease with the time at each admission, and so does Allow. A
//     stopped process that resumes thus detects the end of its lease before it admits anything.
//
// More than C runs only after a lease is lost, because its holder was stopped or cut off from the
// engine while work ran. The work may still run when other members have the slots. It never exceeds
// the lost lease. With Away: Keep, a member that is cut off keeps admitting, but runs at most its
// kept lease at a time. So the overshoot is at most the sum of the leases lost in this way:
// replicas x lease. Each lost lease counts with its amount before the loss, or with an equal share
// of C if the equal share is larger. For a rate R, any time T sees at most R x T, plus saved
// admissions. Each member that keeps its lease while cut off adds its rate meanwhile. The saved
// admissions are a tenth of a second of R, and at least one for each member. A member that was
// asked for more at once may save the requested number, up to its share of a minute. No admission
// is granted in advance: joining and leaving add nothing to the bound. If a budget gets its first
// rate, the rate binds a member from the member's next renewal on.
//
// Not covered: a machine that is suspended as a whole, whose monotonic clock may stand still; a
// bucket that is deleted or loses its data; work that costs more slots than the lease, which runs
// alone; limiters that are Off or in a dry run; and long work, which holds no slot.
//
// A simulation of lost messages, pauses, restarts and clocks of different speeds tests this
// argument (go test ./clusterlimit/internal/budget). A process that is stopped for longer than its
// lease is tested for real (go test ./clusterlimit -run Paused).
//
// # Cost
//
// An admission allocates nothing (go test ./clusterlimit -run Alloc; -bench Allow for the time).
// Each member reads and writes one small value six times in Config.Lease.
//
// All members change the same value. A member that another has beaten pauses for a random time and
// tries again, at most eight times. With round trips of a millisecond, a renewal takes 1.3 tries
// with a hundred members and a lease of 3 s, and as many with a thousand members and a lease of
// 30 s. A thousand members with 3 s are too many: a renewal takes 11 tries, and leases are lost
// (go test ./clusterlimit -v -run Beat). The value of a thousand members is 125 kB long, and a try
// costs each of them 5 ms of a processor (go test ./clusterlimit/internal/budget -run -
// -bench Thousand). So give many replicas a longer lease, or give groups of replicas budgets of
// their own. Stats.Err reports when this is necessary. The command "spillway lab budget" measures
// the rest.
//
// # Pitfalls
//
//   - A handler behind admission should answer a rejection of Allow with admissionhttp.Refuse:
//     admission does not take the reason Budget for overload. A 503 of the handler's own with
//     Retry-After shrinks the limit.
//   - While small requests take the whole rate, nothing is saved for a large one: ask for less at a
//     time. Each member has only its own share.
//   - If there are fewer slots than members with work, the members take turns of two leases, at
//     least 6 s, and refuse their work in between. With one slot, each of N members has one turn in
//     N. A rate below one for each member is shared in the same way. With as many slots as members,
//     no member waits, whatever its work costs.
//   - Replicas of several versions can share a budget, as in a rolling update. What a newer version
//     adds to the value stays. If an older version cannot read the value, its error says so. Do not
//     delete the key: all leases would be given away twice.
//
// # When not to use it
//
// If each replica has a database pool of its own, package limiter alone is enough. To bound what
// one caller may do, use limiter.Keyed.
package clusterlimit
