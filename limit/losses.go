package limit

// losses is the running time of all work and of lost work since the limit was set. A few long
// reports among lookups may take nearly all slot time, and they end long after their cohort was
// read.
type losses struct {
	from        uint64  // first admission that counts
	ran, wasted float64 // time of all and of lost work, in nanoseconds
	ends, lost  int
}

const (
	mostlyWasted = 0.75 // share of the running time from which losses count, however few
	fewLost      = 8    // least lost pieces of work that count
	lossesForget = 256  // ends until all sums are halved
)

func (l *losses) add(s *Sample, lost bool) {
	if s.Seq < l.from || s.Outcome == Unknown || s.Outcome == Failed {
		return
	}
	if l.ends++; l.ends > lossesForget {
		l.ran, l.wasted, l.ends, l.lost = l.ran/2, l.wasted/2, l.ends/2, l.lost/2
	}
	elapsed := latencyOf(*s)
	l.ran += elapsed
	if lost {
		l.wasted += elapsed
		l.lost++
	}
}

// share is the lost share of the time; 0 below fewLost or mostlyWasted.
func (l *losses) share() float64 {
	if l.lost < fewLost || l.wasted < mostlyWasted*l.ran {
		return 0
	}
	return l.wasted / l.ran
}
