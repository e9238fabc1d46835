package fhir

// bundle is a page of what a search found.
type bundle[R any] struct {
	ResourceType string     `json:"resourceType"`
	Type         string     `json:"type"`
	Total        *int       `json:"total,omitempty"` // where it costs nothing to know
	Link         []link     `json:"link"`
	Entry        []entry[R] `json:"entry,omitempty"`
}

type link struct {
	Relation string `json:"relation"`
	URL      string `json:"url"`
}

type entry[R any] struct {
	FullURL  string `json:"fullUrl,omitempty"` // of what has a URL
	Resource R      `json:"resource"`
	Search   found  `json:"search"`
}

type found struct {
	Mode string `json:"mode"` // match, include for what comes with a match, or outcome for what is to be said of the search
}

func newBundle[R any]() bundle[R] { return bundle[R]{ResourceType: "Bundle", Type: "searchset"} }

func (b *bundle[R]) add(url string, r R) {
	b.Entry = append(b.Entry, entry[R]{url, r, found{"match"}})
}

// linkSelf says which page b is: by the query that was asked, where the client wrote it
// in the URL, and otherwise, where asked is empty, by a sealed link that shows no name.
func (b *bundle[R]) linkSelf(s *sealer, kind, base, asked string, page any) error {
	if asked != "" {
		b.Link = append(b.Link, link{"self", base + "?" + asked})
		return nil
	}
	return b.linkSealed(s, "self", kind, base, page)
}

// linkNext leads to the page behind b.
func (b *bundle[R]) linkNext(s *sealer, kind, base string, page any) error {
	return b.linkSealed(s, "next", kind, base, page)
}

func (b *bundle[R]) linkSealed(s *sealer, relation, kind, base string, page any) error {
	token, err := seal(s, kind, page)
	b.Link = append(b.Link, link{relation, base + "?_page=" + token})
	return err
}
