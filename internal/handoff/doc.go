// Package handoff hands jobs to workers: a bounded queue of several priorities, the parked workers,
// and the submitters that wait for room.
//
// The package has no clock, no context and no statistics except counts. core.go holds the state and
// the rules. queue.go holds the lock around them and sends the signals. This page is the protocol.
//
// # States
//
// A job is in one place: with a submitter that waits for room (waiting), in the queue (queued), or
// with a worker (active). A job that left the queue without a worker is out, until the owner calls
// Finish.
//
//	offer ──► waiting ──admit──► queued ──take──► active ──end──► gone
//	   │         └─leave, close     └─remove, purge, drop──► out ──finish──► gone
//	   └─ refused: full, closed
//
// A worker is busy with a job, parked, or called. A called worker was parked or is new, and
// does not run yet. A call reserves no job: the first worker to come takes the first job. So at
// most one worker is called at a time. When the called worker runs and jobs are left, it calls the
// next worker. One call per job would wake many workers that find no job.
//
// A submitter that waits leaves its job behind, and gets a signal when the outcome is known. A
// patient submitter accepts a late signal. The queue then fills from one submitter at a time,
// because waking a submitter costs more than a small job. The job of a late submitter has been
// accepted; only the return of its call is delayed. At most one late submitter is called at a time.
//
// # Rules
//
// A job may be accepted while there is room. Let free be the number of workers that may still
// become busy. The queued jobs must be fewer than the size of the queue plus free. The jobs ahead
// must be fewer than the room of the level plus free.
//
// One lock guards all state. Every operation changes the state and then settles it (or finds it
// steady: nothing to settle). These rules hold whenever the lock is free:
//
//  1. No submitter waits while its level has room.
//  2. No job waits without need: if jobs are queued and fewer workers are busy than the
//     limit allows, a worker is called.
//  3. A job is in exactly one place, and the ledger (Counts) accounts for all jobs.
//  4. Late submitters get their signals soon: if the queue holds no more than the low mark,
//     a late submitter is called.
//  5. Once closed, no submitter waits or is late, and no worker is parked.
//
// A signal is sent after the lock is released. Its channel always has room: the worker or submitter
// was removed from every list before the signal is sent.
//
// Only the marks of full levels are read without the lock. An offer that finds no room sets the
// marks, and any operation that makes room clears them, both under the lock. So a refusal costs one
// atomic load, and is as exact as a refusal under the lock.
//
// model_test.go runs this code through all schedules of a few submitters and workers, a caller that
// leaves, a change of size and a drain. It checks the rules after each step.
package handoff
