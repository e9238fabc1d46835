package proof

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

var (
	killsFlag = flag.Int("kills", 0, "processes that each test of kills kills; 0: as many as it says")
	seedFlag  = flag.Uint64("seed", 0, "of who is killed and when; 0: a random one, which is logged")
)

// trial is a fleet whose processes are killed.
type trial struct {
	*fleet
	random                      *rand.Rand
	servers, producers, workers []*process
	kills, goal                 int
	began                       time.Time
	killed                      map[string]int // by role
	acked, done                 int64          // bytes in the ledgers of killed processes
	ackedAtKill, doneAtKill     int64
}

// newTrial begins a trial. kills is the number of kills, unless the flag -kills is set.
func newTrial(t *testing.T, s site, kills int) *trial {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	f := &fleet{T: t, dir: t.TempDir(), site: s}
	f.site.Store = t.TempDir()
	return &trial{fleet: f, goal: cmp.Or(*killsFlag, kills), began: time.Now(), random: rand.New(rand.NewPCG(seed, 1)), killed: map[string]int{}}
}

// staff starts producers and workers.
func (t *trial) staff(producers, workers int) {
	for range producers {
		t.producers = append(t.producers, t.start(task{Role: "producer"}))
	}
	for range workers {
		t.workers = append(t.workers, t.start(task{Role: "worker"}))
	}
}

// progress waits until further jobs have been acknowledged and done since the last kill, so that
// each kill hits working processes.
func (t *trial) progress() {
	t.Helper()
	least := t.random.Int64N(2000) // bytes
	await.True(t, "jobs are acknowledged and done", func() bool {
		return t.acked+t.written("acked-", t.producers) > t.ackedAtKill+least && t.done+t.written("done-", t.workers) > t.doneAtKill+least
	})
}

// strike kills one of the processes and starts another in its place.
func (t *trial) strike(group []*process) *process {
	t.Helper()
	i := t.random.IntN(len(group))
	p := group[i]
	p.kill()
	t.kills++
	t.killed[p.task.Role]++
	t.acked += t.written("acked-", []*process{p})
	t.done += t.written("done-", []*process{p})
	t.ackedAtKill, t.doneAtKill = t.acked, t.done
	if p.task.Role != "producer" {
		t.ackedAtKill += t.written("acked-", t.producers)
	}
	group[i] = t.start(task{Role: p.task.Role, Node: p.task.Node})
	t.all = slices.DeleteFunc(t.all, func(old *process) bool { return old == p })
	if every := max(t.goal/50, 1); t.kills%every == 0 {
		t.Logf("%d of %d kills in %s: %v", t.kills, t.goal, time.Since(t.began).Round(time.Second), t.killed)
	}
	return group[i]
}

// empty waits until no job is left. It fails if the depths stop changing.
func (t *trial) empty(q jobqueue.Queue) {
	t.Helper()
	left := jobqueue.Depth{Ready: -1} // not known
	for left != (jobqueue.Depth{}) {
		before := left
		await.True(t, fmt.Sprintf("one of the jobs that are left is done: %+v", before), func() bool {
			s, err := q.Stats(t.Context())
			if err == nil {
				left = s.Depth
			}
			return left != before
		})
	}
}

// settle waits until the remaining jobs are done, and returns the account of the trial.
func (t *trial) settle() account {
	t.Helper()
	for _, p := range t.producers {
		t.await(p) // before it is ready, a process may end with an error
		t.stop(p)
	}
	q, err := t.site.open(t.Context())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer q.Close()
	t.empty(q)
	var letters []jobqueue.DeadJob
	await.True(t, "the dead letters are told", func() bool { // an answer may take longer than site.open waits for it
		letters, err = q.Dead(t.Context(), 1<<20)
		return err == nil
	})
	for _, p := range t.workers {
		t.await(p)
		t.stop(p)
	}
	acked, err := readLedgers(t.dir, "acked-")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := readLedgers(t.dir, "done-")
	if err != nil {
		t.Fatal(err)
	}
	var done, dead []string
	for _, line := range lines {
		if key, ok := strings.CutPrefix(line, "done "); ok {
			done = append(done, key)
		}
	}
	for _, d := range letters {
		dead = append(dead, d.Job.Key)
	}
	a := settle(acked, done, dead)
	t.Logf("%d kills %v: %v", t.kills, t.killed, a)
	if a.acknowledged == 0 || a.done == 0 {
		t.Error("nothing was done")
	}
	return a
}

func TestAKilledProcessLosesNoJobThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	a, _ := killed(t, 3, site{AckWait: 3 * time.Second, Attempts: 10})
	a.nothingLost(t)
}

// A killed server may have forgotten that it has delivered a job, or may not have answered its end:
// the job runs twice, and 207 of 25,670 were counted twice. An end that was not answered counts as
// lost, unless the server tells whose it was.
func TestDoneCountsAJobOnceThoughItsServerIsKilled(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, site{Addrs: []string{freeAddr(t)}}, 6)
	tr.servers = []*process{tr.start(task{Role: "server"})}
	tr.await(tr.servers[0])
	queues := []jobqueue.Queue{}
	for range 2 {
		q := open(t, jetstream.Config{URL: "nats://" + tr.site.Addrs[0], MaxInFlight: 16, AckWait: 3 * time.Second, Wait: 10 * time.Second})
		worker(t, q)
		queues = append(queues, q)
	}
	ended := func() (done, lost uint64) {
		for _, q := range queues {
			s, _ := q.Stats(t.Context()) // the counters do not need the engine
			done, lost = done+s.Done, lost+s.Lost
		}
		return done, lost
	}
	stored := uint64(0)
	var producers sync.WaitGroup
	for kill := range tr.goal {
		const jobs = 400
		for i := range 8 {
			producers.Go(func() {
				for n := i; n < jobs; n += 8 {
					await.True(t, "a job is stored", func() bool {
						_, err := queues[0].Enqueue(t.Context(), jobqueue.Job{Key: fmt.Sprint(kill, "-", n)})
						return err == nil
					})
				}
			})
		}
		stored += jobs
		before, _ := ended()
		least := before + uint64(tr.random.IntN(jobs/2))
		await.True(t, "some are done", func() bool { done, _ := ended(); return done > least })
		tr.strike(tr.servers)
		producers.Wait()
	}
	tr.empty(queues[0])
	await.True(t, "all are done or lost", func() bool { done, lost := ended(); return done+lost >= stored })
	if done, lost := ended(); done > stored {
		t.Errorf("%d jobs are done %d times, and %d are lost", stored, done, lost)
	}
}

func TestAKilledNodeLosesNoJobThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	a, _ := killedNodes(t, 1, site{AckWait: 3 * time.Second, Attempts: 10})
	a.nothingLost(t)
}

// nothingLost checks the account except for the duplicates: if the machine stalls for AckWait, jobs
// are done again without a kill.
func (a account) nothingLost(t *testing.T) {
	t.Helper()
	a.duplicates = 0
	for _, fault := range a.verdict(0, 0) {
		t.Error(fault)
	}
}

// killed kills producers, workers and the embedded server. The first three kills are one of each.
func killed(t *testing.T, kills int, s site) (account, *trial) {
	s.Addrs, s.InFlight, s.Wait = []string{freeAddr(t)}, 16, time.Second
	tr := newTrial(t, s, kills)
	tr.servers = []*process{tr.start(task{Role: "server"})}
	tr.await(tr.servers[0])
	tr.staff(2, 2)
	for tr.kills < tr.goal {
		n := tr.random.IntN(10)
		if tr.kills < 3 {
			n = []int{1, 4, 7}[tr.kills]
		}
		switch {
		case n < 1: // the server, while it starts
			tr.strike(tr.servers)
			tr.strike(tr.servers)
		case n < 4:
			tr.progress()
			tr.strike(tr.servers)
		case n < 7:
			tr.progress()
			tr.strike(tr.producers)
		default:
			tr.progress()
			tr.strike(tr.workers)
		}
	}
	tr.progress()
	return tr.settle(), tr
}

// killedNodes kills one node of a cluster at a time.
func killedNodes(t *testing.T, kills int, s site) (account, *trial) {
	const nodes = 3
	s.InFlight, s.Wait = 16, time.Second
	for range nodes {
		s.Addrs, s.Routes = append(s.Addrs, freeAddr(t)), append(s.Routes, freeAddr(t))
	}
	tr := newTrial(t, s, kills)
	for i := range nodes {
		tr.servers = append(tr.servers, tr.start(task{Role: "node", Node: i}))
	}
	for _, p := range tr.servers {
		tr.await(p)
	}
	tr.staff(2, 2)
	for tr.kills < tr.goal {
		tr.progress()
		if tr.kills > 0 && tr.random.IntN(4) == 0 {
			tr.strike(tr.workers)
			continue
		}
		tr.healthy()
		tr.await(tr.strike(tr.servers))
	}
	tr.progress()
	tr.healthy()
	return tr.settle(), tr
}

// healthy waits until every node has all data. Only then may a node be killed.
func (t *trial) healthy() {
	t.Helper()
	await.True(t, "all nodes have everything", func() bool {
		return current(t.Context(), t.site.Addrs, len(t.servers))
	})
}
