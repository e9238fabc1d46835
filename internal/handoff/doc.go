// Package handoff is where jobs and workers meet: a bounded queue of several
// priorities, the workers parked at it, and the submitters that wait for room.
//
// It knows no clock, no context and no statistics: it only counts. core.go is the state and the rules, queue.go the lock around them and the
// signals that follow. This page is the protocol.
//
// # States
//
// A job is in one place: offered by a submitter that waits for room (waiting), in
// the queue (queued), or with a worker (active). Once it has left the queue by
// another way, it is out, until the owner says that it is finished with it.
//
//	offer ──► waiting ──admit──► queued ──take──► active ──end──► gone
//	   │         └─leave, close     └─remove, purge, drop──► out ──finish──► gone
//	   └─ refused: full, closed
//
// A worker is busy with a job, parked, or called: taken from the parked ones, or
// newly made, and not running yet. A call reserves no job: the
// first worker to come takes the first job. So at most one worker is called at a time, and it
// calls the next one when it runs and jobs are left; a worker for each job would
// wake many to find nothing.
//
// A submitter that waits leaves its job behind, and is told of what became of it.
// It may agree to be told late: then the queue fills from one submitter at a time,
// because waking one costs more than a job that does little. A late submitter's
// job has been accepted; only the return of its call is put off. As with workers,
// at most one of them is called at a time.
//
// # Rules
//
// A job may be accepted while there is room: queued jobs are fewer than the size
// of the queue and one for each worker that may still become busy, and those ahead
// of it fewer than the room of its level and those workers.
//
// All state is under one lock. Every operation changes it and then settles it (or
// finds it steady: nothing to settle), and these hold whenever the lock is free:
//
//  1. No submitter waits while there is room: the first that waits at a level has none.
//  2. No job waits for nothing: if jobs are queued and fewer workers are busy than
//     may be, a worker is called.
//  3. A job is in exactly one place, and the ledger (Counts) says where all went.
//  4. A late submitter is told soon: if the queue holds no more than the low mark,
//     one of them is called.
//  5. Once closed, no submitter waits or is late, and no worker is parked.
//
// A signal is sent after the lock was released, to a channel that always has a
// place for it: the worker or submitter has been taken from every list before.
//
// One thing is read without the lock: which levels were found full. The mark is
// set by an offer that found no room and is cleared with whatever makes room, both
// under the lock. So a refusal costs a load, and is as exact as one under the lock.
//
// model_test.go runs this code through all schedules of a few submitters and
// workers, a caller that leaves, a change of size and a drain, and checks the rules
// after each step.
package handoff
