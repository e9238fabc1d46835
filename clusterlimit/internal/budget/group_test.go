package budget

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// interleaving is a root and three groups, whose members act on what they have read any time ago.
type interleaving struct {
	t       *testing.T
	r       *rand.Rand
	values  map[string]simValue
	pending []func()
	closed  int // accounts
}

func (w *interleaving) put(key string, next State, revision int) (won bool) {
	if w.values[key].revision != revision {
		return false
	}
	s, err := Parse(next.Encode())
	if err != nil {
		w.t.Fatalf("%v: %s", err, next.Encode())
	}
	w.values[key] = simValue{s, revision + 1}
	root := w.values[simRoot]
	for kind := range Kinds {
		if root.revision > 0 && root.Free(kind) < 0 {
			w.t.Fatalf("after %s: the accounts are more than the budget: %s", key, root.Encode())
		}
		for id, v := range w.values {
			if leased := v.Totals[kind] - min(v.Free(kind), 0); root.revision > 0 && id != simRoot && leased > root.Of(id).Has[kind] {
				w.t.Fatalf("after %s: group %s has %d of %d\n%s\n%s", key, id, leased, root.Of(id).Has[kind], v.Encode(), root.Encode())
			}
		}
	}
	return true
}

// begin reads what the member needs for one step, and leaves the step for later.
func (w *interleaving) begin(i int, h *Holder, id string) func() {
	group, root := w.values[id], w.values[simRoot]
	switch op := w.r.IntN(8); {
	case op == 0 && len(group.Leases) > 0: // Close
		return func() { w.put(id, h.Leave(group.State, Amounts{}), group.revision) }
	case op == 1: // another group, which may have no members
		other := fmt.Sprint(w.r.IntN(3))
		orphan := w.values[other]
		if len(orphan.Leases) > 0 || root.Of(other).Token == 0 {
			return nil
		}
		later := func() {
			root := w.values[simRoot]
			s, done := orphan.Retire(root.Of(other))
			switch {
			case root.Of(other).Token == 0:
			case !done:
				w.put(other, s, orphan.revision)
			default:
				w.pending[i] = func() {
					if w.put(simRoot, root.Leave(other), root.revision) {
						w.closed++
					}
				}
			}
		}
		return later
	case op < 5 && h.written.Seq > 0:
		return func() {
			next, _ := h.Visit(root.State, id)
			if w.put(simRoot, next, root.revision) {
				h.Visited()
			}
		}
	}
	wants, inUse := Amounts{w.r.IntN(40) * w.r.IntN(2), w.r.IntN(400) * w.r.IntN(2)}, Amounts{}
	for kind, has := range group.Of(h.terms.ID).Has {
		inUse[kind] = w.r.IntN(has + 1)
	}
	return func() {
		h.Aim(0, group.State, wants)
		if w.put(id, h.Renew(0, inUse), group.revision) {
			h.Confirm()
		}
	}
}

// Whatever the order of the steps, and however old what they have read, the accounts sum to at most
// the budget, and a group's Totals and leases are at most its account.
func FuzzGroupsKeepToTheirAccounts(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &interleaving{t: t, r: rand.New(rand.NewPCG(seed, 5)), values: map[string]simValue{}, pending: make([]func(), 9)}
		first := State{}.Share(Amounts{40, 400}).Renew(Terms{ID: "first", TTL: time.Second}, Amounts{}, Amounts{}).Leave("first").Split()
		root, _, _ := State{}.Visit(FirstGroup, time.Second, first)
		w.put(FirstGroup, first, 0)
		w.put(simRoot, root.Grow(time.Second).Grow(time.Second), 0)
		var holders []*Holder
		for i := range w.pending {
			h := NewHolder(Terms{ID: fmt.Sprint("m", i), TTL: time.Second})
			h.Enter(root)
			holders = append(holders, h)
		}
		for range 2000 {
			i := w.r.IntN(len(w.pending))
			if do := w.pending[i]; do != nil {
				w.pending[i] = nil
				do()
			} else {
				w.pending[i] = w.begin(i, holders[i], fmt.Sprint(i%3))
			}
		}
		if w.values[simRoot].revision < 100 {
			t.Errorf("only %d visits", w.values[simRoot].revision)
		}
	})
}

// A root that was lost, or restored from a copy, may have less in an account than the group has. The
// group kept that until its demand fell: a budget of 10,000 had 10,354 in groups.
func TestAGroupGivesBackWhatItsAccountLacks(t *testing.T) {
	h := holder("a", false)
	group := renew(h, State{}, 0, 100, 0).Split()
	group = renew(h, group, 1, 100, 0)
	root, _, _ := State{}.Visit(FirstGroup, simTTL, group)
	root.Leases[0].Has = Amounts{total / 4}
	root.Leases = append(root.Leases, Lease{ID: "1", Token: 1, Beat: 1, Has: Amounts{total - total/4}, Wants: Amounts{100}, Account: Account{Members: 1}})
	for range 3 {
		root, _ = h.Visit(root, FirstGroup)
		h.Visited()
		group = renew(h, group, 2, 100, 0)
	}
	account := root.Of(FirstGroup)
	if has := group.Of("a").Has[Slots]; group.Totals[Slots] > account.Has[Slots] || has > account.Has[Slots] || has == 0 || root.Free(Slots) < 0 {
		t.Errorf("%s, of %s", group.Encode(), root.Encode())
	}
}

// A root without groups, which only people can write, made a replica that joined panic.
func TestARootWithoutGroupsGrows(t *testing.T) {
	if s := (State{}).Grow(simTTL); len(s.Leases) != 1 || s.Leases[0].ID != FirstGroup {
		t.Errorf("%+v", s)
	}
}

func TestATextOfANewerFormatIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "{}", `{"epoch":3,"totals":[10,0],"leases":null}`, format, "spillway-budget-2 9 1 2 3 4 5 1", format + " 9 1 2 3 4 5 1 8", format + " 9 1 2 3 4 5 1\na 3 1 3000 1 2 3",
		format + " 9 1 2 3 4 5 1\na 3 10 3000 1 2 3 4", format + " -9 1 2 3 4 5 1", format + " 9 1 2 3 4 5 1\nb 3 1 9 1 2 3 4\na 3 1 9 1 2 3 4",
	} {
		if s, err := Parse([]byte(text)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}
