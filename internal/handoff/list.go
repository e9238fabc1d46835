package handoff

// list holds submitters in order of arrival; any of them can leave.
type list[T any] struct {
	head, tail *Waiter[T]
	n          int
}

// place is the list that a submitter is in.
type place uint8

const (
	nowhere place = iota
	waiting       // for room
	late          // its job was accepted; its signal is still to be sent
)

func (l *list[T]) push(w *Waiter[T], at place) {
	w.prev, w.next, w.place = l.tail, nil, at
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.n++
}

func (l *list[T]) remove(w *Waiter[T]) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev, w.place = nil, nil, nowhere
	l.n--
}

// pop removes the first submitter of a list that has one.
func (l *list[T]) pop() *Waiter[T] {
	w := l.head
	l.remove(w)
	return w
}
