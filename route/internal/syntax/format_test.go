package syntax

import (
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestAnEmailIsAMailboxWithoutQuotes(t *testing.T) {
	l64, l63 := strings.Repeat("a", 64), strings.Repeat("b", 63)
	for text, ok := range map[string]bool{
		"a@b.c": true, "ada.king@example.org": true, "a+b/c=d!#$%&'*?^_`{|}~-@b-c.example": true, "0@1.2": true, l64 + "@" + l63 + ".example": true, "A@B.C": true, "a@xn--bcher-kva.example": true,
		"a@b!c.d": false, "a@b_c.d": false, "a@b": false, "a@.c": false, "a@b.": false, "a@b..c": false, "@b.c": false, "a": false, "": false, ".a@b.c": false, "a.@b.c": false, "a..b@c.d": false,
		"a@b@c.d": false, "a b@c.d": false, "a@-b.c": false, "a@b-.c": false, "a@b.c-": false, "<script>@b.c": false, "a@<script>.c": false, `"a b"@c.d`: false, "a@[127.0.0.1]": false, "Ada <a@b.c>": false,
		"a@b.c\n": false, "ä@b.c": false, "a@ä.c": false, "a(b)@c.d": false, "a,b@c.d": false, l64 + "a@b.c": false, "a@" + l63 + "b.c": false, l64 + "@" + strings.Repeat(l63+".", 3) + "c": false, "a@b c.d": false, `a\@b.c`: false,
	} {
		if Formats["email"](text) != ok {
			t.Errorf("%q: %t", text, !ok)
		}
	}
}

func TestAURIIsOneOfRFC3986(t *testing.T) {
	for text, ok := range map[string]bool{
		"http://example.org": true, "https://user:pw@example.org:8080/a/b;c=1,2/%C3%A4?q=1&r=/?#top/?": true, "urn:isbn:0451450523": true, "mailto:a@b.c": true, "tel:+44-20": true, "http://[2001:db8::7]:80/": true, "ldap://[2001:db8::7]/c=GB?objectClass?one": true,
		"file:///etc/hosts": true, "a+b-c.1:": true, "http://": true, "http://a:/": true, "http://a//b": true, "x:/a//b": true, "data:text/plain,a%20b": true, "http://1.2.3.4": true, "http://a/()'*!$&+,;=:@~-._": true,
		"": false, "a": false, "/a": false, "//a/b": false, "a b:c": false, "http://a b": false, "http://a/b c": false, "http://a/<script>": false, "http://a/?<script>": false, "http://a/#<b>": false, `C:\temp`: false, "1a:b": false, ":a": false, "-a:b": false, "ä:b": false,
		"http://ä.example": false, "http://a/ä": false, "http://a/%": false, "http://a/%4": false, "http://a/%zz": false, "http://a/?%zz": false, "http://a/#%": false, "http://a/#b#c": false, "http://a/[b]": false, "http://a/?[b]": false, "http://a/{b}": false, "http://a/b|c": false, "http://a/b^c": false, "http://a/b`c": false, `http://a/"b"`: false,
		"http://a:b/": false, "http://a:80:80/": false, "http://[::1": false, "http://[::1]a/": false, "http://[::g]/": false, "http://[1.2.3.4]/": false, "http://[fe80::1%25en0]/": false, "http://a@b@c/": false, "http://::1/": false, "http://a\\b/": false, "http://a/\n": false, "http://a/\x7f": false, " http://a": false, "http://a ": false,
	} {
		if Formats["uri"](text) != ok {
			t.Errorf("%q: %t", text, !ok)
		}
	}
}

// grammars are the grammars of the formats, written independently of the code.
var grammars = map[string]*regexp.Regexp{
	"date-time": regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`),
	"date":      regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`),
	"uri":       regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:([A-Za-z0-9._~:/?#@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})*$`),
	"email":     regexp.MustCompile("^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+$"),
	"uuid":      regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`),
}

// Texts of a format are accepted by the packages of the standard library, and by the grammar.
func FuzzFormats(f *testing.F) {
	for _, seed := range []string{"http://u:p@[::1]:80/%41?b#c", "urn:a:b", "x:", "http://a%41b/", "http://a:99999999999/", "a.b@c.d", "a@b!c.d", "x://@:/", "2006-01-02", "2006-01-02t03:04:60.5z", "1998-12-31T23:59:60Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, ok := range Formats {
			if ok(text) && !grammars[name].MatchString(text) {
				t.Errorf("%q is a %s", text, name)
			}
		}
		if u, err := url.Parse(text); isURI(text) && (err != nil || !u.IsAbs()) {
			t.Errorf("%q: %v, %v", text, u, err)
		}
		if a, err := mail.ParseAddress(text); isEmail(text) && (err != nil || a.Address != text || a.Name != "") {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	})
}
