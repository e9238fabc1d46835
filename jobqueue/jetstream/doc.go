// Package jetstream keeps durable jobs in NATS JetStream, either in a server of this process
// (package embedded) or in a cluster by URL.
//
//	server, err := embedded.Start(embedded.Config{Dir: "/var/lib/orders/jobs"})
//	queue, err := jetstream.Open(ctx, jetstream.Config{Server: server})
//
// A queue consists of four streams. The first holds the jobs, including delayed jobs: a subject and
// a consumer for each priority. The second holds dead letters, because JetStream has none. The
// third holds one message, a slot, for each handler that may run at once, over all processes: the
// holder of a slot may run a job. The fourth counts the jobs that were handed back without a run,
// or when Work ended, because JetStream counts deliveries.
//
// Up to eight concurrent calls of Enqueue are a commit each, made by their own goroutines. Calls
// beyond them share a commit: calls that arrive meanwhile join the next commit. No timer is
// involved, so a single caller waits for one commit and nothing else. Without an
// fsync (NoSync) there is nothing to share, and each call is a commit.
// docs/adr/0016-jobs-are-committed-in-groups.md gives the reasons.
//
// # Cost
//
// A commit is an fsync (go test ./jobqueue/jetstream -run - -bench Enqueue). The removal of an
// ended job is another fsync, which jobs do not share (-bench Work). With NoSync of an
// embedded server, the server fsyncs every two seconds. A machine that stops may then lose what was
// acknowledged in these two seconds.
//
// # Pitfalls
//
//   - On a server with less than 1 GiB to give, a queue takes the half, the quarter and so on that
//     fits. Set MaxBytes once the server has more.
//   - Limiter bounds handlers and requests together: give both the same limiter, and the jobs a
//     lower Priority. A refused job is tried again within a second, or when a job of this process
//     ends, and no attempt is counted. After a second it goes back to whoever asks, as does a job
//     whose handler rejects it. The limiter's metrics count each such try as refused.
//   - While the engine is away, Enqueue waits for Wait, 5 s. A caller that cannot wait so long
//     needs a context that ends earlier, or a smaller Wait.
//   - A login that the server refuses is tried again for ever: the log says so once, the errors of
//     Enqueue and Stats each time, and spillway.jobqueue.engine_away is 1.
//   - A server that is reached and answers nothing for 5 s, such as one that is cut off from its
//     cluster, is left for another server of the URL or of the cluster: after 5 s, then after pauses
//     of 10 s to 80 s until one answers. The log and the errors say so. Give the URL all servers. Without
//     another address the connection stays.
//   - In a cluster the queue listens on $JS.EVENT.ADVISORY.*.LEADER_ELECTED.>, and asks a new leader
//     at once. Without the permission to subscribe, the log says so, and a change of a leader may cost
//     Wait.
//   - A killed server leaves it open who has ended the jobs whose ends were under way, at most
//     MaxInFlight. Such a job counts as Lost in Stats, though it is done, unless the server tells
//     whose the end was; a test that kills servers counts about one for each.
//   - A server ends a connection for good if its max_payload was lowered by a reload and a larger job
//     comes. The client library ends a connection for good after an error that it does not know. Then
//     handlers lose their jobs, Work returns ErrUnavailable, and Queue.Open is false: restart the
//     process, or open the queue again. Let the end of Work end the process. A process that only
//     enqueues has Queue.Open for its probes. A restart of the server with a lower limit does no harm.
//   - Jobs that are due again come before new jobs of their priority. Jobs that a handler gives back for
//     a short time, such as NotYet(100 ms), hold up the new ones if they are more than the workers can
//     run in that time, or in a second if they are more than four times MaxInFlight: give them a longer
//     time, or a lower priority.
//   - At most 50,000 jobs of a priority can be delayed or wait for their next attempt. Jobs behind
//     them wait too, even if they are ready.
//   - In Stats, a delayed job counts as ready until a worker has received it, and may count as in
//     flight afterwards. The command "spillway queue inspect --dir" knows that nothing is in
//     flight.
//   - A Work that ends hands its running jobs back without counting an attempt, unless the engine
//     does not answer at that time.
//   - Streams with the queue's names must have the queue's policy. Open changes what can be
//     changed, such as discard policy, age, sizes and subjects, and logs each change. For the rest,
//     such as storage, retention and a mirror, its error names the field: delete the stream, or use
//     another Name.
//     While the queue is open, Stats does the same, and Work each minute; Open and they also restore
//     consumers. Limits that belong to Config stay as they are.
//   - A consumer that somebody pauses, with a tool of the engine, hands out no jobs. Work logs this
//     each minute.
//   - A stream or a consumer that is deleted while the queue is open is made again by the process
//     that notices, with a line in its log. The contents are lost. A request under way is repeated,
//     or ends with ErrUnavailable. To remove a queue, first end all processes that have it open.
//   - A server by URL does not report a full disk: Enqueue returns ErrUnavailable after Wait, also
//     when there is room again. Restart such a server. A server that has reached its max_file_store
//     reports it at once, and needs no restart.
//   - A dead letter that is larger than the server's max_payload, which may have been lowered, loses
//     the end of its reason, its headers and the end of its payload. Replay refuses a letter without
//     its whole payload.
//   - With a server by URL, whether an acknowledged job is on disk depends on the server's
//     sync_interval, or on its replicas.
//   - Foreign messages in the queue's streams become dead letters.
package jetstream
