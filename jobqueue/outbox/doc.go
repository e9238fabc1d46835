// Package outbox enqueues durable jobs in a transaction of the caller's database: the job exists if
// and only if the transaction commits. Enqueue writes a row, and Relay moves committed rows to a
// jobqueue.Queue. SQLite and PostgreSQL work, with any driver of database/sql.
//
//	box, err := outbox.New(db, outbox.PostgreSQL, queue, outbox.Config{})
//	go box.Relay(ctx) // in any number of processes
//
//	tx, err := db.BeginTx(ctx, nil)
//	_, err = tx.ExecContext(ctx, "INSERT INTO orders ...")
//	err = box.Enqueue(ctx, tx, jobqueue.Job{Key: orderID, Payload: body})
//	err = tx.Commit()
//	box.Wake() // optional: spares the wait for the next look
//
// [Schema] returns the tables for a migration. The log, [Stats] and [Metrics] say when rows wait. The
// example Service is a whole process: an engine inside, a Relay, workers, and the order in which
// they stop.
//
// # What is promised
//
// Each job of a committed transaction goes to the queue at least once. A row is deleted after the
// queue has acknowledged its job. If the relay or the database fails in between, the row is sent
// again, with the same key, and the queue drops it as a duplicate. The queue knows a key for its
// deduplication window, by default two minutes, and an embedded engine that was restarted has
// forgotten the keys of jobs that have ended: then the jobs of at most a batch of 100 rows run
// twice. Handlers must tolerate that, as with every job.
//
// Rows are sent in the order of their numbers, and one relay at a time sends. So jobs of
// transactions that did not overlap are enqueued in the order of the commits. Transactions that
// overlap have the order of their calls of Enqueue, except that a row whose transaction commits late
// comes late; it is never skipped. Config.Parallel above 1 gives up the order within a batch, and
// Retry moves a job to the end. Workers run jobs at the same time, whatever the order.
//
// A job that the queue refuses for good, such as one that is too large, is set aside with the reason:
// see Refused, Retry and Remove. The other rows go on. While the queue is full or away, rows stay,
// and the relay backs off.
//
// # Cost
//
// Enqueue is one INSERT in the caller's transaction. Without rows a relay reads once for each
// Config.Poll and writes nothing. A batch of up to 100 rows costs a SELECT, a DELETE and an UPDATE of
// the lease, and the queue's commits: with Parallel 1 a commit for each row. With Parallel 100 a
// jetstream queue shares commits, and takes several times as many rows a second.
//
// # Pitfalls
//
//   - The database's own clock measures ages, delays and the lease. A delay begins with Enqueue.
//   - The process whose relay is killed held the lease: rows then wait for up to 15 seconds. Let ctx
//     end instead, and wait for Relay.
//   - On PostgreSQL, a transaction that is open for hours anywhere in the database keeps deleted rows
//     from being vacuumed, and the relay reads over them.
//   - On SQLite the relay is one more writer: set busy_timeout, and _txlock=immediate, with which a
//     transaction waits for its turn before it reads. The example Service has the URL.
//   - SQLite gives no turns in order: a writer without pauses, such as an import, can keep the relay
//     out for as long as the writer works, and no statement fails. A *sql.DB with SetMaxOpenConns(1)
//     gives turns in order, to the writers of its process: use one for all that writes, the Box
//     included, and another for reads. Inside a transaction then use the transaction alone.
//   - On a full disk of SQLite the caller's transaction fails with SQLite's error; the relay deletes
//     rows, which makes room in the file, and tries again while even that fails.
//   - A process that opens a queue cannot start while the engine is away: jetstream.Open fails. A
//     process that must take orders even then enqueues with a Box whose queue is nil, and leaves
//     Relay to other processes.
//   - Rows hold payloads and headers as they were given. Encrypt what the database must not show.
//   - Wake wakes relays of this Box only. For other processes, a trigger of PostgreSQL that calls
//     pg_notify and a connection that listens and calls Wake do the same; Poll stays the safety net.
//
// # When not to use it
//
// When no row of a database must agree with the job, call Enqueue of the queue: it costs less and is
// done when it returns. For jobs that are worked straight from PostgreSQL, without a queue beside it,
// see the comparison in docs/packages.md.
package outbox
