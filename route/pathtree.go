package route

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// pathTree tells which methods and which group a path has, for the answers of the Mux itself.
// ServeMux finds a pattern for one method; to list the methods it would be asked once for each.
type pathTree struct {
	paths node             // of all groups, and of patterns without a host
	hosts map[string]*node // of patterns with a host
}

// node is a position in the paths of patterns and groups, after some segments.
type node struct {
	literal map[string]*node // by unescaped segment
	single  *node            // {name}
	exact   methods          // of patterns that end here
	slash   methods          // of patterns that end with a slash here, and match nothing below it
	below   methods          // of patterns that match every path below this one, after a slash
	group   *Group           // whose prefix ends here
}

// methods are the methods of one path, as sent in Allow.
type methods struct {
	names  []string // sorted
	header []string // the value of Allow: nil if there are no methods
}

// with returns m and further methods. The result shares nothing with m, unless it is m.
func (m methods) with(names ...string) methods {
	all := slices.Clone(m.names)
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if len(all) == len(m.names) {
		return m
	}
	slices.Sort(all)
	return methods{all, []string{strings.Join(all, ", ")}}
}

// add records a pattern that ServeMux has accepted. A pattern for all methods leaves none to refuse.
func (t *pathTree) add(pattern string) {
	i := strings.IndexAny(pattern, " \t")
	if i < 0 {
		return
	}
	names := []string{pattern[:i]}
	if names[0] == http.MethodGet {
		names = append(names, http.MethodHead)
	}
	host, path, _ := strings.Cut(strings.TrimLeft(pattern[i:], " \t"), "/")
	n := &t.paths
	if host != "" {
		if n = t.hosts[host]; n == nil {
			if t.hosts == nil {
				t.hosts = map[string]*node{}
			}
			n = new(node)
			t.hosts[host] = n
		}
	}
	for {
		segment, rest, more := strings.Cut(path, "/")
		switch {
		case segment == "{$}" && !more:
			n.slash = n.slash.with(names...)
			return
		case !more && (segment == "" || strings.HasSuffix(segment, "...}")):
			n.below = n.below.with(names...)
			return
		}
		n = n.next(segment)
		if !more {
			n.exact = n.exact.with(names...)
			return
		}
		path = rest
	}
}

// addGroup records the prefix of a group. Of two groups with one prefix the first is found.
func (t *pathTree) addGroup(g *Group) {
	n := &t.paths
	for segment := range strings.SplitSeq(g.prefix[1:], "/") {
		n = n.next(segment)
	}
	if n.group == nil {
		n.group = g
	}
}

// next returns the node after n and a segment of a pattern. It makes the node if there is none.
func (n *node) next(segment string) *node {
	if strings.HasPrefix(segment, "{") {
		if n.single == nil {
			n.single = new(node)
		}
		return n.single
	}
	segment = unescaped(segment)
	next := n.literal[segment]
	if next == nil {
		if n.literal == nil {
			n.literal = map[string]*node{}
		}
		next = new(node)
		n.literal[segment] = next
	}
	return next
}

// at returns the methods that patterns have for the host and the clean, escaped path of a request, and
// the group with the longest prefix, or nil. A path that ServeMux would redirect to the same path with
// a slash at the end has the methods of that path. at allocates only if segments are escaped, or if
// several patterns match the path.
func (t *pathTree) at(host, path string) (methods, *Group) {
	if path == "" { // CONNECT to a host and a port
		path = "/"
	}
	var found search
	if t.hosts != nil {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if n := t.hosts[host]; n != nil {
			n.find(path, 0, &found)
		}
	}
	t.paths.find(path, 0, &found)
	return found.methods, found.group
}

// search is what was found so far.
type search struct {
	methods methods
	group   *Group
	depth   int // of the prefix of group
}

func (s *search) add(m methods) {
	if s.methods.header == nil {
		s.methods = m
	} else if m.header != nil {
		s.methods = s.methods.with(m.names...)
	}
}

// find adds to s what n and the nodes below have for the rest of a path, after depth segments.
func (n *node) find(path string, depth int, s *search) {
	if n.group != nil && depth > s.depth {
		s.group, s.depth = n.group, depth
	}
	s.add(n.below)
	switch path {
	case "":
		s.add(n.exact)
		fallthrough
	case "/":
		s.add(n.slash)
		return
	}
	segment, end := path[1:], strings.IndexByte(path[1:], '/')
	if path = ""; end >= 0 {
		segment, path = segment[:end], segment[end:]
	}
	segment = unescaped(segment)
	if next := n.literal[segment]; next != nil {
		next.find(path, depth+1, s)
	}
	if n.single != nil && segment != "" && segment != "/" { // ServeMux matches no wildcard with only an escaped slash
		n.single.find(path, depth+1, s)
	}
}

// unescaped returns a segment without escapes, or as it is if the escapes are wrong, as ServeMux does.
func unescaped(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}
