// Package sim (scratch)
package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

const never = time.Duration(math.MaxInt64)

type Class struct {
	Share    float64
	Priority spillway.Priority
	Deadline time.Duration
	Service  func(r *rand.Rand) time.Duration
	Errs     float64
	FastErr  bool
}

type Change struct {
	At    time.Duration
	Slots float64
	Speed float64
}

type Config struct {
	Seed     uint64
	Dur      time.Duration
	From     time.Duration
	Rate     func(t time.Duration) float64 // arrivals/s
	MaxRate  float64
	Classes  []Class
	Degrade  bool
	Gamma    float64
	Slots    int
	Mean     time.Duration
	Changes  []Change
	Law      limit.Law
	Oracle   bool
	LIFO     bool
	Trace    func(now time.Duration, law limit.Law, g *gate.Gate, r *Result)
	TraceEvery time.Duration
}

type request struct {
	at, deadline time.Duration
	work         time.Duration
	fail         bool
	class        int
	prio         spillway.Priority
	started      time.Duration
	seq uint64
	state        uint8 // 0 new 1 waiting 2 in backend 3 done
	gen          uint32
	w            gate.Waiter
	v            float64
	idx          int
	next         *request
}

type Result struct {
	Offered, OK, OKCrit, OffCrit, Late, Err, Rej int
	Good, GoodCrit                  float64
	P50, P99                        float64
	Peak                            int
	Bins                            []int
	lat                             []float64
	Events int
}

type run struct {
	cfg    *Config
	now    time.Duration
	ag     agenda
	free   *request
	g      *gate.Gate
	arrR, wR *rand.Rand
	slots  int
	speed  float64
	// nway
	busy   int
	fifo   []*request
	fh     int
	// degr
	jobs   []*request
	vnow   float64
	last   time.Duration
	tgen   uint32
	inB    int
	res    *Result
	chg    int
	// oracle queues
	oq     [2][]*request
}

func Run(cfg Config) *Result {
	s := &run{cfg: &cfg, slots: cfg.Slots, speed: 1, res: &Result{}}
	s.arrR = rand.New(rand.NewPCG(cfg.Seed, 0x51ee))
	s.wR = rand.New(rand.NewPCG(cfg.Seed, 0xbeef))
	s.res.Bins = make([]int, int(cfg.Dur/(100*time.Millisecond))+60)
	if !cfg.Oracle {
		s.g = gate.New(gate.Config{Law: cfg.Law, QueueSize: 100000, MaxWait: 10 * time.Second})
	}
	s.ag.push(0, arrive, nil, 0)
	for _, c := range cfg.Changes {
		s.ag.push(c.At, change, nil, 0)
	}
	if cfg.Trace != nil {
		s.ag.push(cfg.TraceEvery, tick, nil, 0)
	}
	nextArr := time.Duration(0)
	t := 0.0
	advance := func() bool {
		for {
			t += s.arrR.ExpFloat64() / cfg.MaxRate
			nextArr = time.Duration(t * 1e9)
			if nextArr >= cfg.Dur {
				return false
			}
			if s.arrR.Float64()*cfg.MaxRate <= cfg.Rate(nextArr) {
				return true
			}
		}
	}
	first := true
	for {
		e, ok := s.ag.pop()
		if !ok {
			break
		}
		s.now = e.at
		s.res.Events++
		switch e.kind {
		case arrive:
			if !first {
				s.arrival()
			}
			first = false
			if advance() {
				s.ag.push(nextArr, arrive, nil, 0)
			}
		case finish:
			if cfg.Degrade {
				if e.gen == s.tgen {
					s.psAdvance()
					s.psArm()
				}
			} else if e.req.gen == e.gen {
				s.busy--
				s.inB--
				s.nDispatch()
				s.ended(e.req, false)
			}
		case expire:
			r := e.req
			if r.gen != e.gen {
				break
			}
			s.expired(r)
		case change:
			c := cfg.Changes[s.chg]
			s.chg++
			if cfg.Degrade {
				s.psAdvance()
			}
			s.slots, s.speed = max(1, int(math.Round(float64(cfg.Slots)*c.Slots))), c.Speed
			if cfg.Degrade {
				s.psArm()
			} else {
				s.nDispatch()
			}
			s.dispatch()
		case tick:
			cfg.Trace(s.now, cfg.Law, s.g, s.res)
			if s.now < cfg.Dur {
				s.ag.push(s.now+cfg.TraceEvery, tick, nil, 0)
			}
		}
	}
	r := s.res
	win := (cfg.Dur - cfg.From).Seconds()
	r.Good, r.GoodCrit = float64(r.OK)/win, float64(r.OKCrit)/win
	if len(r.lat) > 0 {
		slices.Sort(r.lat)
		r.P50, r.P99 = r.lat[len(r.lat)/2], r.lat[len(r.lat)*99/100]
	}
	return r
}

func (s *run) arrival() {
	r := s.free
	if r == nil {
		r = &request{}
	} else {
		s.free = r.next
	}
	gen := r.gen + 1
	*r = request{gen: gen, idx: -1}
	u := s.wR.Float64()
	k := 0
	for ; k < len(s.cfg.Classes)-1; k++ {
		if u -= s.cfg.Classes[k].Share; u < 0 {
			break
		}
	}
	c := &s.cfg.Classes[k]
	r.class, r.prio, r.at = k, c.Priority, s.now
	r.work = c.Service(s.wR)
	if c.Errs > 0 && s.wR.Float64() < c.Errs {
		r.fail = true
		if c.FastErr {
			r.work = time.Duration(float64(time.Millisecond) * (0.5 + s.wR.Float64()))
		}
	}
	r.deadline = never
	if c.Deadline > 0 {
		r.deadline = s.now + c.Deadline
	}
	if s.now >= s.cfg.From {
		s.res.Offered++
		if r.prio == spillway.Critical {
			s.res.OffCrit++
		}
	}
	if s.cfg.Oracle {
		q := 1
		if r.prio == spillway.Critical {
			q = 0
		}
		s.oq[q] = append(s.oq[q], r)
		s.dispatch()
		return
	}
	r.w = gate.Waiter{Owner: r}
	d := s.g.Arrive(s.now, gate.Arrival{Cost: 1, Priority: r.prio, Deadline: r.deadline}, &r.w)
	switch d.Verdict {
	case gate.Admit:
		s.start(r)
	case gate.Wait:
		r.state = 1
		if r.deadline != never {
			s.ag.push(r.deadline, expire, r, r.gen)
		}
	case gate.Reject:
		s.reject(r)
	}
}

func (s *run) reject(r *request) {
	if r.at >= s.cfg.From {
		s.res.Rej++
	}
	s.recycle(r)
}

func (s *run) recycle(r *request) {
	r.state = 3
	r.gen++
	r.next = s.free
	s.free = r
}

func (s *run) expired(r *request) {
	switch r.state {
	case 1:
		if s.g.Leave(&r.w) {
			s.reject(r)
			s.dispatch()
		}
	case 2:
		if s.cfg.Degrade {
			if r.idx >= 0 {
				s.psAdvance()
				s.psRemove(r.idx)
				s.psArm()
			}
			s.inB--
			s.ended(r, true)
		} else if r.idx == -2 { // in hidden fifo
			for i := s.fh; i < len(s.fifo); i++ {
				if s.fifo[i] == r {
					s.fifo = slices.Delete(s.fifo, i, i+1)
					break
				}
			}
			s.inB--
			s.ended(r, true)
		}
	}
}

func (s *run) start(r *request) {
	waited := r.state == 1
	r.state = 2
	r.started = s.now
	if s.g != nil {
		r.seq = s.g.Seq()
	}
	s.inB++
	s.res.Peak = max(s.res.Peak, s.inB)
	if s.cfg.Degrade {
		s.psAdvance()
		r.v = s.vnow + float64(r.work)
		s.psPush(r)
		s.psArm()
	} else if s.busy < s.slots {
		s.busy++
		s.ag.push(s.now+time.Duration(float64(r.work)/s.speed), finish, r, r.gen)
		r.idx = -1
		return
	} else {
		r.idx = -2
		s.fifo = append(s.fifo, r)
	}
	if !waited && r.deadline != never {
		s.ag.push(r.deadline, expire, r, r.gen)
	}
}

func (s *run) nDispatch() {
	for s.busy < s.slots && s.fh < len(s.fifo) {
		r := s.fifo[s.fh]
		s.fifo[s.fh] = nil
		s.fh++
		if s.fh > 1024 && s.fh*2 > len(s.fifo) {
			s.fifo = append(s.fifo[:0], s.fifo[s.fh:]...)
			s.fh = 0
		}
		s.busy++
		r.idx = -1
		s.ag.push(s.now+time.Duration(float64(r.work)/s.speed), finish, r, r.gen)
	}
}

func (s *run) ended(r *request, timeout bool) {
	late := timeout || s.now > r.deadline
	o := limit.Success
	switch {
	case late:
		o = limit.Censored
		if r.at >= s.cfg.From {
			s.res.Late++
		}
	case r.fail:
		o = limit.Failed
		s.res.Err++
	default:
		if b := int(s.now / (100 * time.Millisecond)); b < len(s.res.Bins) {
			s.res.Bins[b]++
		}
		if s.now >= s.cfg.From && s.now < s.cfg.Dur {
			s.res.OK++
			if r.prio == spillway.Critical {
				s.res.OKCrit++
			}
		}
	}
	if r.at >= s.cfg.From {
		s.res.lat = append(s.res.lat, float64(s.now-r.at)/1e6)
	}
	if s.g != nil {
		s.g.End(s.now, gate.Grant{Seq: r.seq, Start: r.started, Cost: 1, Priority: r.prio}, o)
	}
	s.recycle(r)
	s.dispatch()
}

func (s *run) dispatch() {
	if s.cfg.Oracle {
		for s.inB < s.slots {
			var r *request
			for i := range s.oq {
				for len(s.oq[i]) > 0 && r == nil {
					var x *request
					if s.cfg.LIFO {
						x = s.oq[i][len(s.oq[i])-1]
						s.oq[i] = s.oq[i][:len(s.oq[i])-1]
					} else {
						x = s.oq[i][0]
						s.oq[i] = s.oq[i][1:]
					}
					if x.deadline-s.now <= s.cfg.Mean*4/3 {
						s.reject(x)
						continue
					}
					r = x
				}
				if r != nil {
					break
				}
			}
			if r == nil {
				return
			}
			s.start(r)
		}
		return
	}
	for {
		w, granted := s.g.Next(s.now)
		if w == nil {
			return
		}
		r := w.Owner.(*request)
		if !granted {
			s.reject(r)
			continue
		}
		s.start(r)
	}
}

// processor sharing with a knee
func (s *run) psRate() float64 {
	c, k := float64(len(s.jobs)), float64(s.slots)
	r := s.speed
	if c > k {
		r *= math.Pow(k/c, 1+s.cfg.Gamma)
	}
	return r
}
func (s *run) psAdvance() {
	if len(s.jobs) > 0 {
		s.vnow += float64(s.now-s.last) * s.psRate()
	}
	s.last = s.now
}
func (s *run) psArm() {
	for len(s.jobs) > 0 && s.jobs[0].v <= s.vnow+1 {
		r := s.jobs[0]
		s.psRemove(0)
		s.inB--
		s.ended(r, false) // may start others
	}
	s.tgen++
	if len(s.jobs) > 0 {
		s.ag.push(s.now+time.Duration((s.jobs[0].v-s.vnow)/s.psRate())+1, finish, nil, s.tgen)
	}
}
func (s *run) psPush(r *request) {
	s.jobs = append(s.jobs, r)
	r.idx = len(s.jobs) - 1
	s.psUp(r.idx)
}
func (s *run) psUp(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if s.jobs[i].v >= s.jobs[p].v {
			break
		}
		s.psSwap(i, p)
		i = p
	}
}
func (s *run) psSwap(i, j int) {
	s.jobs[i], s.jobs[j] = s.jobs[j], s.jobs[i]
	s.jobs[i].idx, s.jobs[j].idx = i, j
}
func (s *run) psRemove(i int) {
	n := len(s.jobs) - 1
	r := s.jobs[i]
	if i != n {
		s.psSwap(i, n)
	}
	s.jobs = s.jobs[:n]
	r.idx = -1
	if i < n {
		s.psUp(i)
		for {
			c := 2*i + 1
			if c >= n {
				break
			}
			if c+1 < n && s.jobs[c+1].v < s.jobs[c].v {
				c++
			}
			if s.jobs[i].v <= s.jobs[c].v {
				break
			}
			s.psSwap(i, c)
			i = c
		}
	}
}
