// Package debugpage is the page behind admissionhttp.DebugHandler: the live state of limiters, and
// the report of their dry run. One renderer in Go makes the page and its updates; the script only
// inserts the updates. The page needs only the path on which it is served, and changes nothing.
package debugpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/limiter"
)

//go:embed style.css
var style string

//go:embed script.js
var script string

// policy is the Content-Security-Policy. It permits the page's own style and script, by their
// hashes, an empty icon, so that the browser requests none, and the page's own stream.
var policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	hash(style), hash(script))

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// picture is a snapshot of a limiter.
type picture struct {
	limiter.Stats
	Processors inside.Processors
	Pressure   inside.Pressure

	open      bool    // neither draining nor closed
	collector float64 // share of the processors that the garbage collector takes
}

// idle reports whether the limiter accepts no more work and nothing runs.
func (p *picture) idle() bool {
	return !p.open && p.InFlight == 0 && p.LongInFlight == 0 && p.Paused == 0 && p.Parked == 0 && p.Queued == 0
}

// Page serves the page. It has no goroutine: whoever uses a limiter looks at all of them, at most once in an
// interval, and so do requests for the page.
type Page struct {
	read func() []picture

	mu       sync.Mutex
	at       time.Time // time of the last look
	watches  []watch
	sections []section
	version  uint64 // number of looks
	rendered uint64 // the version that sections show
	readers  int    // readers of the stream
}

// section is a part of the page that updates replace as a whole.
type section struct {
	id      string
	html    string
	changed uint64 // the version of the last change
}

// pictureOf returns the picture of a limiter now.
func pictureOf(l *limiter.Limiter) picture {
	in := inside.Of(l)
	return picture{Stats: l.Stats(), Processors: in.Processors(), Pressure: in.Pressure(), open: l.Open()}
}

// New returns the page for limiters, in this order. A nil limiter is skipped.
func New(limiters ...*limiter.Limiter) *Page {
	var all []*limiter.Limiter
	for _, l := range limiters {
		if l != nil {
			all = append(all, l)
		}
	}
	var gc collector
	p := newPage(len(all), func() []picture {
		share, seen := gc.share(time.Now()), make([]picture, len(all))
		for i, l := range all {
			seen[i] = pictureOf(l)
			seen[i].collector = share
		}
		return seen
	})
	p.sample(time.Now())
	of := weak.Make(p) // a limiter does not keep its pages alive
	for _, l := range all {
		stop := inside.Of(l).Every(interval, func() {
			if p := of.Value(); p != nil {
				p.sample(time.Now())
			}
		})
		runtime.AddCleanup(p, func(stop func()) { stop() }, stop)
	}
	return p
}

// sample looks at the limiters unless somebody else does.
func (p *Page) sample(now time.Time) {
	if p.mu.TryLock() {
		defer p.mu.Unlock()
		p.observe(now)
	}
}

// observe looks at the limiters unless the last look is fresh. The caller holds the lock.
func (p *Page) observe(now time.Time) {
	if p.version > 0 && now.Sub(p.at) < fresh {
		return
	}
	pictures := p.read()
	p.at = now
	p.version++
	for i := range pictures {
		p.watches[i].add(now, pictures[i])
	}
}

// newPage returns the page for the n limiters that read returns.
func newPage(n int, read func() []picture) *Page {
	p := &Page{read: read, watches: make([]watch, n)}
	for i := range p.watches {
		p.watches[i].created = time.Now()
	}
	return p
}

// ServeHTTP serves the page, JSON for ?format=json, and the stream of updates for ?events.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", policy)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	query := r.URL.Query()
	switch format := query.Get("format"); {
	case query.Has("events"):
		p.serveEvents(w, r)
	case format == "json":
		p.serveJSON(w)
	case format == "" || format == "html":
		p.servePage(w)
	default:
		http.Error(w, "format is json or html", http.StatusBadRequest)
	}
}

func (p *Page) servePage(w http.ResponseWriter) {
	_, sections, _ := p.refresh(time.Now(), 0)
	var m markup
	m.document(sections)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(m.Bytes())
}

// refresh looks at the limiters unless the last look is fresh. It returns the current version, the
// sections that changed after the version seen, and whether anything is left to show.
func (p *Page) refresh(now time.Time, seen uint64) (version uint64, changed []section, live bool) {
	p.mu.Lock()
	defer p.mu.Unlock() // unlocks even if a limiter's observer panics
	p.observe(now)
	if p.rendered != p.version {
		p.rendered = p.version
		p.render(now)
	}
	for _, s := range p.sections {
		if s.changed > seen {
			changed = append(changed, s)
		}
	}
	live = len(p.watches) == 0
	for i := range p.watches {
		live = live || !p.watches[i].now.idle()
	}
	return p.version, changed, live
}

// render makes all sections again and marks the changed sections.
func (p *Page) render(now time.Time) {
	views := make([]view, len(p.watches))
	for i := range p.watches {
		views[i] = viewOf(i, &p.watches[i], now)
	}
	current := sections(views, now)
	for i := range current {
		current[i].changed = p.version
		if i < len(p.sections) && p.sections[i].html == current[i].html {
			current[i].changed = p.sections[i].changed
		}
	}
	p.sections = current
}
