// Package periodic enqueues durable jobs at set times: cron expressions with a time zone, and fixed
// intervals. Every process runs the same Scheduler. Each instant of an entry has one key, so the
// queue's deduplication keeps one job of all processes. There is no leader and no state of its own.
//
//	nightly, err := periodic.Parse("30 2 * * *", berlin)
//	scheduler, err := periodic.New(periodic.Config{Queue: queue, Entries: []periodic.Entry{
//		{Name: "report", Schedule: nightly, Job: func(at time.Time) jobqueue.Job { … }},
//	}})
//	err = scheduler.Run(ctx) // blocks; queue.Work runs the jobs, here or in other processes
//
// [Schedule.Next] has the rule for the days on which a zone's clock is changed. In short, "30 2 * * *"
// runs once on each day, and "*/5 * * * *" and @every run at equal distances.
//
// # One run of each instant
//
// An instant is enqueued at most Entry.CatchUp late. That is all that happens after a restart, while
// the engine is away, and after a process stood still: the latest instant is enqueued if it is not
// older than CatchUp, and earlier instants are passed over, with a count and a line in the log. A
// process that starts does not know what others enqueued, and enqueues the latest instant again: a
// duplicate, as long as the engine remembers the key. So:
//
//	the engine's Dedupe > CatchUp + the difference between the first and the last clock + the engine's Wait
//
// The defaults, two minutes, one minute and 5 s, leave 55 s for the clocks. With a smaller Dedupe
// an instant may run twice; a NATS server with a short duplicate_window shortens jetstream's default. For
// a CatchUp of hours, open a queue of its own with a Dedupe that fits, because the engine keeps the key
// of each job in memory for so long.
//
//   - Clocks that differ: the job is enqueued when the first clock shows the instant.
//   - A clock that is set ahead, and a process that was suspended, are noticed within 10 seconds.
//   - A clock that is set back shows instants again, and their jobs are enqueued again: duplicates if
//     the clock was set back by less than Dedupe, otherwise runs.
//   - The engine is away, or the queue is full: Enqueue is repeated each second, or when a rejection
//     advises, until the next instant comes or CatchUp has passed.
//   - In a rolling update that changes a schedule, both versions enqueue their instants while both
//     run. An instant of both has one job, from either version. With another Name there are two.
//
// # Cost
//
// Run starts no goroutine and wakes every 10 seconds. Each process makes one call of Enqueue for each
// instant.
//
// # Pitfalls
//
//   - A key spares work; it does not make a job run only once. A handler that must not repeat its work
//     uses Delivery.Key, which has the entry's name and the instant. A restarted engine has forgotten
//     the keys of ended jobs: if an embedded server is restarted with its process, the latest instant
//     runs again if that is within CatchUp.
//   - With the default CatchUp, a night is passed over if no process runs for more than a minute at
//     that time, as in a deployment of a single process. Give a rare entry a CatchUp of hours, and
//     its handler a record of what is done, such as a table with the instant as primary key.
//   - A new entry also catches up: its latest instant runs at once if that is within CatchUp.
//   - A job that takes longer than the interval runs beside the next one.
//   - time.LoadLocation needs a zone database. In an image without one, import time/tzdata, which adds
//     450 KB. Processes with different databases may disagree for a while after a country's rules change.
//   - time.Local is a zone of the machine: use it only if all machines agree.
//   - Run calls Enqueue for one entry after another. An engine that does not answer holds all of them.
//
// # When not to use it
//
// For work that each process does for itself, such as refreshing a cache, use a time.Ticker.
package periodic
