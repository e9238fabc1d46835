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
// NATS JetStream, or several: from the 41st member on the members form groups of at most 32, each
// with a value of its own, and one more value divides the budget among the groups. Members change a
// value by compare and set: the engine orders the changes, and there is no leader.
//
// The engine is a NATS server with JetStream: nats-server -js, or package jobqueue/embedded with
// Listen. The budgets of an account of NATS are in one bucket, "spillway". A missing bucket is created
// with file storage and one copy; for several copies create it before joining. [Config.FailClosed]
// selects what members do while the engine is away. Stats.Standing and the
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
//   - A group has at most what its account in the dividing value has. A group gives amounts back only
//     after its members have, and its members use a gain only after the account has it. An account has
//     no end. If all members of a group are gone, members of another group take their leases one by
//     one, as above, and then close the account.
//   - A limiter compares the end of the lease with the time at each admission, and so does Allow. A
//     stopped process that resumes thus detects the end of its lease before it admits anything.
//
// More than C runs only after a lease is lost, because its holder was stopped or cut off from the
// engine while work ran. The work may still run when other members have the slots. It never exceeds
// the lost lease. Without FailClosed, a member that is cut off keeps admitting, but runs at most its
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
// argument, and so do random interleavings of members that act on what they read long ago (go test
// ./clusterlimit/internal/budget). A process that is stopped for longer than its
// lease is tested for real (go test ./clusterlimit -run Paused).
//
// # Cost
//
// An admission allocates nothing (go test ./clusterlimit -run Alloc; -bench Allow for the time).
// Each member reads and writes one small value six times in Config.Lease, or three times if the
// budget has more than 40 members.
//
// With a lease of 3 s, a member of a thousand sends and receives 3 kB a second, and 4.6 kB at most;
// of two hundred, 3.5 to 4 kB; of 30, 6 to 7 kB. A thousand members that join at once have all
// joined after a second. When a tenth of the members wants twice the budget, it has seven tenths of
// it after 1 s with 30 members, and after 2 s with a thousand. When those members die, others have it
// after 5 s. These are simulated times with round trips of 1 to 2 ms (go test ./clusterlimit -v -run
// Thousand); the bytes of two hundred members are counted on their connections (-run TwoHundred).
// Eight processes that admit a million a second, and what they run at a time while one is cut off or
// stopped: make soak NAMES=clusterlimit.Processes.
//
// Members of one value, or of one group, change the same value. A member that another has beaten
// pauses for a random time and tries again, at most eight times. With round trips of a
// millisecond and 40 members, a renewal takes 1.1 tries (go test ./clusterlimit -v -run Beat).
//
// # Trouble with the engine
//
// A member renews its lease again after any trouble of its connection. The connection is
// opened again for ever, also after refused logins, and replaced if the client library has closed it
// for good. If a server accepts the connection, but has not answered a write for 5 s, as a server
// that is cut off from its cluster, the member connects to another address of its URL or of the
// cluster: after 10 s to one more, then after 20, 40 and each 80 s, until a write is answered.
// Stats.Err and the log say so.
//
// A bucket that is gone, as with the disk of a server, is made anew with one copy. Until all members
// have renewed, they may then use up to twice the total.
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
//     no member waits, whatever its work costs. If there are fewer slots than groups, the groups take
//     turns too, each until all its members have had theirs.
//   - Replicas of several versions can share a budget, as in a rolling update. What a newer version
//     adds to the value stays. If an older version cannot read the value, its error says so. Do not
//     delete the keys: all leases would be given away twice.
//   - A budget that once had groups keeps them. Its members find a share that is free within some
//     seconds instead of one. After all members have died at once, the next ones have the whole budget
//     after four to five leases.
//
// # When not to use it
//
// If each replica has a database pool of its own, package limiter alone is enough. To bound what
// one caller may do, use limiter.Keyed.
package clusterlimit
