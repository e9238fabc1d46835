package loadgen

import (
	"fmt"
	"net/http"
	"strings"
)

// looksAt reports whether Check sees the body of an answer.
func (h *HTTP) looksAt(status int) bool { return h.cfg.Check != nil && isGood(status) }

func isGood(status int) bool { return status >= 200 && status <= 299 }

// outcome returns the outcome of a complete answer.
func (h *HTTP) outcome(n uint64, status int, body []byte) (Outcome, error) {
	switch {
	case h.looksAt(status):
		if err := h.cfg.Check(n, status, body); err != nil {
			return Error, checkError{err}
		}
		return OK, nil
	case isGood(status):
		return OK, nil
	case isRefusal(status):
		return Rejected, nil
	}
	return Error, statusError(status)
}

type statusError int

func (e statusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e))))
	switch e {
	case 301, 302, 303, 307, 308:
		text += ": a redirect that was not followed"
	}
	return text
}

// checkError hides the error of Check from errors.Is: the outcome is Error whatever that error
// wraps.
type checkError struct{ err error }

func (e checkError) Error() string { return "check: " + e.err.Error() }

func bodyError(err error) error { return fmt.Errorf("reading the body: %w", err) }

// remember keeps the first error.
func (h *HTTP) remember(err error) {
	if h.firstError.Load() == nil {
		first := err // only the first error moves to the heap
		h.firstError.CompareAndSwap(nil, &first)
	}
}

// FirstError returns the first error behind an Error outcome, or nil. The error explains what went
// wrong.
func (h *HTTP) FirstError() error {
	if err := h.firstError.Load(); err != nil {
		return *err
	}
	return nil
}
