package route

import (
	"encoding/xml"
	"io"
	"net/url"
	"strings"
)

// tree is an element as encoding/xml decodes it without a known type.
type tree struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []tree     `xml:",any"`
}

// twinXML decodes a tree, and then treats the tree as a form with a nested part.
func twinXML(body string) *fuzzed {
	d := xml.NewDecoder(strings.NewReader(body))
	var root *tree
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil || strings.Contains(body, "<!") && directive(body) {
			return nil
		}
		switch t := token.(type) {
		case xml.CharData:
			if strings.TrimSpace(string(t)) != "" {
				return nil
			}
		case xml.StartElement:
			if root != nil {
				return nil
			}
			root = new(tree)
			if d.DecodeElement(root, &t) != nil {
				return nil
			}
		}
	}
	if root == nil || !attributes(root.Attrs) {
		return nil
	}
	form := url.Values{}
	var sub *fuzzedSub
	for _, n := range root.Nodes {
		name := n.XMLName.Local
		if name == "sub" {
			if sub != nil || !attributes(n.Attrs) {
				return nil
			}
			if sub = twinElement(n, 2); sub == nil {
				return nil
			}
			continue
		}
		if len(n.Nodes) > 0 || len(n.Attrs) > 0 {
			return nil
		}
		if name != "name" && name != "tags" {
			n.Text = strings.TrimSpace(n.Text)
		}
		form.Add(name, n.Text)
	}
	if len(form["tags"]) > 3 {
		return nil
	}
	out := twinForm(form.Encode())
	if out != nil {
		out.Sub = sub
	}
	return out
}

func twinElement(n tree, depth int) *fuzzedSub {
	var out fuzzedSub
	codes := 0
	for _, c := range n.Nodes {
		switch c.XMLName.Local {
		case "code":
			out.Code = c.Text
			if codes++; codes > 1 || len(c.Nodes) > 0 || len(c.Attrs) > 0 {
				return nil
			}
		case "subs":
			sub := twinElement(c, depth+1)
			if sub == nil || !attributes(c.Attrs) {
				return nil
			}
			out.Subs = append(out.Subs, *sub)
		default:
			return nil
		}
	}
	if depth > fuzzedDepth || out.Code != "a" && out.Code != "b" {
		return nil
	}
	return &out
}

// attributes reports whether all attributes are namespace declarations.
func attributes(attrs []xml.Attr) bool {
	for _, a := range attrs {
		if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
			return false
		}
	}
	return true
}

// directive reports whether body has a directive.
func directive(body string) bool {
	for d := xml.NewDecoder(strings.NewReader(body)); ; {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if _, ok := token.(xml.Directive); ok {
			return true
		}
	}
}
