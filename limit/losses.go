package limit

// losses are what came of the time that work ran, since the limit was set. Reports may be
// few among lookups, and nearly all that is done; they end when the cohort that they
// were admitted with has long been read.
type losses struct {
	from        uint64  // the first piece of work that counts
	ran, wasted float64 // nanoseconds
	ends, lost  int
}

const (
	mostlyWasted = 0.75 // of the time that work ran: so much is lost, however little work that is
	fewLost      = 8    // say nothing yet
	lossesForget = 256  // ends
)

func (l *losses) add(s *Sample, lost bool) {
	if s.Seq < l.from || s.Outcome == Unknown || s.Outcome == Failed {
		return
	}
	if l.ends++; l.ends > lossesForget {
		l.ran, l.wasted, l.ends, l.lost = l.ran/2, l.wasted/2, l.ends/2, l.lost/2
	}
	l.ran += took(*s)
	if lost {
		l.wasted += took(*s)
		l.lost++
	}
}

// share is the share of the time that was lost, where that is most of it.
func (l *losses) share() float64 {
	if l.lost < fewLost || l.wasted < mostlyWasted*l.ran {
		return 0
	}
	return l.wasted / l.ran
}
