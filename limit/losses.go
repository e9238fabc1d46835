package limit

// lostTime is the running time of all work and of lost work since the limit was set. A few long
// reports among lookups may take nearly all slot time, and they end long after their cohort was
// read: the losses of a cohort alone would miss them.
type lostTime struct {
	from           uint64  // first admission that counts
	ran, lost      float64 // time of all and of lost work, in nanoseconds
	ends, lostEnds int
}

const (
	mostlyLost   = 0.75 // share of the running time from which lost time counts, however few pieces of work are lost
	fewLost      = 8    // least lost pieces of work that count
	lossesForget = 256  // ends until all sums are halved
)

func (l *lostTime) add(s *Sample, lost bool) {
	if s.Seq < l.from || s.Outcome == Unknown || s.Outcome == Failed {
		return
	}
	if l.ends++; l.ends > lossesForget {
		l.ran, l.lost, l.ends, l.lostEnds = l.ran/2, l.lost/2, l.ends/2, l.lostEnds/2
	}
	elapsed := latencyOf(*s)
	l.ran += elapsed
	if lost {
		l.lost += elapsed
		l.lostEnds++
	}
}

// share is the lost share of the time; 0 below fewLost or mostlyLost.
func (l *lostTime) share() float64 {
	if l.lostEnds < fewLost || l.lost < mostlyLost*l.ran {
		return 0
	}
	return l.lost / l.ran
}
