package clusterlimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// key returns the key of a group. The first group has the key of the budget's single value.
func (m *Member) key(group string) string {
	if group == budget.FirstGroup {
		return "budget." + m.cfg.Name
	}
	return "group." + m.cfg.Name + "." + group
}

// root returns the key of the value that divides the budget among groups.
func (m *Member) root() string { return "root." + m.cfg.Name }

// place chooses the member's group: the single value while that has room, or else any group with
// room. It splits the single value and adds groups where necessary. It returns false without an error
// if another member was faster.
func (m *Member) place(ctx context.Context) (placed bool, err error) {
	for {
		first, revision, err := m.read(ctx, m.key(budget.FirstGroup))
		if err != nil {
			return false, err
		}
		if first.Seq == 0 && revision > 0 && len(first.Leases) < budget.MostAlone {
			m.group = budget.FirstGroup
			return true, nil
		}
		if first.Seq == 0 && revision > 0 {
			first = first.Split()
			if won, err := m.write(ctx, m.key(budget.FirstGroup), first, revision); !won {
				return false, err
			}
		}
		root, at, err := m.read(ctx, m.root())
		if err != nil {
			return false, err
		}
		if revision == 0 && at == 0 { // a new budget: other groups have none of it
			m.group = budget.FirstGroup
			return true, nil
		}
		next := root
		if at == 0 {
			next, _, _ = root.Visit(budget.FirstGroup, m.cfg.Lease, first)
		}
		next = next.Share(m.totals())
		open := next.Open(budget.MostMembers, m.full)
		if len(open) > 0 && at > 0 && next.Totals == root.Totals {
			m.group = open[rand.N(len(open))]
			m.act(func() { m.holder.Enter(root) })
			return true, nil
		}
		if len(open) == 0 {
			next = next.Grow(m.cfg.Lease)
		}
		if won, err := m.write(ctx, m.root(), next, at); !won {
			return false, err
		}
	}
}

// totals returns the totals that the member sets when it joins.
func (m *Member) totals() budget.Amounts {
	return budget.Amounts{budget.Slots: m.cfg.Concurrency, budget.Rate: m.cfg.Rate}
}

// isFull reports whether a member that joins has to join another group. A member that has lost its
// lease returns to its group in any case.
func (m *Member) isFull(s budget.State) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	most := budget.MostMembers
	if s.Seq == 0 {
		most = budget.MostAlone
	}
	return m.holder.Token() == 0 && len(s.Leases) >= most && s.Of(m.id).Token == 0
}

// visit visits the root if that is due after a renewal. An error of the engine means no more than
// that the next visit, of another member, does the work. A root that cannot be read is logged once,
// and is the member's error until the next renewal.
func (m *Member) visit(ctx context.Context, wants budget.Amounts) {
	m.mu.Lock()
	due := m.holder.DueVisit()
	m.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Lease/visitPart)
	defer cancel()
	urgent := false
	err := compete(ctx, m.cfg.Lease, func(ctx context.Context) (bool, error) {
		root, revision, err := m.read(ctx, m.root())
		if err != nil {
			return false, err
		}
		m.mu.Lock()
		next, missing := m.holder.Visit(root, m.group)
		m.mu.Unlock()
		won, err := m.write(ctx, m.root(), next, revision)
		if won {
			m.mu.Lock()
			urgent = m.holder.Visited()
			m.mu.Unlock()
			m.adopt(missing)
		}
		return won, err
	}, func() {})
	switch {
	case errors.Is(err, errUnreadable):
		m.act(func() { m.counts.err = err })
		if !m.unreadable {
			m.cfg.Logger.Warn("spillway budget: the groups cannot divide the budget", "budget", m.cfg.Name, "error", err)
		}
		m.unreadable = true
	case err == nil:
		m.unreadable = false
	}
	if err == nil && urgent {
		_ = compete(ctx, m.cfg.Lease, func(ctx context.Context) (bool, error) { return m.try(ctx, wants) }, func() {})
	}
}

// orphan is a group that seems to be without members. This member removes the group's leases when
// they are over, as a member of the group would, and then closes the group's account.
type orphan struct {
	*budget.Holder
	epoch uint64        // as last read or written; another one means that a member renews
	until time.Duration // when the member gives up
}

const (
	mostOrphans  = 4 // at a time
	orphanLeases = 4 // how many leases of the group's members the member waits
)

func (m *Member) adopt(groups []string) {
	for _, id := range groups {
		if m.orphans[id] == nil && len(m.orphans) < mostOrphans {
			m.orphans[id] = &orphan{Holder: budget.NewHolder(budget.Terms{})}
		}
	}
}

// lookAfter takes one step with each orphan. After an error or a lost race the orphan is left to the
// next visitor that misses it.
func (m *Member) lookAfter(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Lease/attempts)
	defer cancel()
	for id, o := range m.orphans {
		if kept, err := m.step(ctx, id, o); !kept || err != nil {
			delete(m.orphans, id)
		}
	}
}

// step reports whether the orphan needs another step.
func (m *Member) step(ctx context.Context, id string, o *orphan) (kept bool, err error) {
	s, revision, err := m.read(ctx, m.key(id))
	if err != nil {
		return false, err
	}
	now, was := m.now(), len(s.Leases)
	if o.until == 0 {
		longest := m.cfg.Lease
		for _, l := range s.Leases {
			longest = max(longest, time.Duration(l.TTL))
		}
		o.until, o.epoch = now+orphanLeases*longest, s.Epoch
	}
	if s.Epoch != o.epoch {
		return false, nil
	}
	if s = o.Expire(now, s); len(s.Leases) > 0 {
		if len(s.Leases) == was {
			return now < o.until, nil
		}
		o.epoch = s.Epoch
		return m.write(ctx, m.key(id), s, revision)
	}
	root, at, err := m.read(ctx, m.root())
	account := root.Of(id)
	if err != nil || account.Token == 0 {
		return false, err
	}
	s, done := s.Retire(account)
	if o.epoch = s.Epoch; !done {
		return m.write(ctx, m.key(id), s, revision)
	}
	_, err = m.write(ctx, m.root(), root.Leave(id), at)
	return false, err
}
