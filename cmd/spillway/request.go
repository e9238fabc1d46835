package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/load/loadgen"
)

// requestFlags say what is sent.
type requestFlags struct {
	Method string   `short:"X" aliases:"m" group:"The request" help:"Method; GET, or POST when there is a body."`
	Header []string `short:"H" sep:"none" group:"The request" placeholder:"\"NAME: VALUE\"" help:"A header; may be repeated."`
	Body   string   `short:"d" group:"The request" placeholder:"TEXT|@FILE" help:"Body of every request; @FILE reads it from a file, and @- from standard input."`
	Follow bool     `group:"The request" help:"Follow redirects, up to ten for a request. Otherwise a redirect is an error. Latency then covers all of them, and a request costs this command more."`

	Insecure bool   `aliases:"insecure-skip-tls-verify" group:"The connection" help:"Accept any TLS certificate, as for a server of your own."`
	CACert   string `name:"cacert" aliases:"root-certs" group:"The connection" placeholder:"FILE" help:"Certificates of those that may sign the server's, in place of the system's (PEM)."`
	Cert     string `group:"The connection" placeholder:"FILE" help:"A certificate that shows the server who asks (PEM)."`
	Key      string `group:"The connection" placeholder:"FILE" help:"The key of --cert (PEM); left out, it is in the same file."`
	Proxy    string `short:"x" group:"The connection" placeholder:"URL" help:"Send through a proxy, such as http://localhost:3128 or socks5://localhost:1080. A password in it is not seen by others in the environment variable. No proxy is used unless this says so. A request costs this command more."`
	Unix     string `aliases:"unix-socket" group:"The connection" placeholder:"PATH" help:"Connect to a Unix socket, whatever the host of the URL is."`
}

// AfterApply has the header of the environment sent beside those of the command line. Other
// flags replace what the environment says; this one would take the token away.
func (f *requestFlags) AfterApply(kctx *kong.Context) error {
	name := func(header string) string {
		name, _, _ := strings.Cut(header, ":")
		return http.CanonicalHeaderKey(strings.TrimSpace(name))
	}
	for _, flag := range kctx.Flags() {
		if flag.Name != "header" || len(flag.Envs) == 0 {
			continue
		}
		header := os.Getenv(flag.Envs[0])
		if header != "" && !slices.ContainsFunc(f.Header, func(given string) bool { return name(given) == name(header) }) {
			f.Header = append(f.Header, header)
		}
	}
	return nil
}

// mostRedirects is how many a request follows, as net/http's client does.
const mostRedirects = 10

// config is what the flags say about every request, without its URL.
func (f *requestFlags) config(stdin io.Reader) (loadgen.HTTPConfig, error) {
	h := loadgen.HTTPConfig{Method: strings.ToUpper(f.Method), Header: http.Header{}}
	for _, line := range f.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return h, fmt.Errorf("header %q: want NAME: VALUE", line)
		}
		h.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if file, ok := strings.CutPrefix(f.Body, "@"); ok {
		read := func() ([]byte, error) { return os.ReadFile(file) }
		if file == "-" {
			read = func() ([]byte, error) { return io.ReadAll(stdin) }
		}
		var err error
		if h.Body, err = read(); err != nil {
			return h, fmt.Errorf("the body: %w", err)
		}
	} else if f.Body != "" {
		h.Body = []byte(f.Body)
	}
	if f.Follow {
		h.Redirects = mostRedirects
	}
	return h, f.connect(&h)
}

// connect sets in h how the server is reached.
func (f *requestFlags) connect(h *loadgen.HTTPConfig) error {
	ca, err := readPEM("--cacert", f.CACert)
	if err != nil {
		return err
	}
	cert, err := readPEM("--cert", f.Cert)
	if err != nil {
		return err
	}
	key, err := readPEM("--key", f.Key)
	if err != nil {
		return err
	}
	if f.Insecure || ca != nil || cert != nil {
		h.TLS = &tls.Config{InsecureSkipVerify: f.Insecure}
	}
	if ca != nil {
		h.TLS.RootCAs = x509.NewCertPool()
		if !h.TLS.RootCAs.AppendCertsFromPEM(ca) {
			return errors.New("--cacert: no certificate in it: want a PEM file, with lines such as -----BEGIN CERTIFICATE-----")
		}
	}
	if key != nil && cert == nil {
		return errors.New("--key goes with --cert")
	}
	if cert != nil {
		if key == nil {
			key = cert
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("--cert and --key: %w: want PEM files of a certificate and its key", err)
		}
		h.TLS.Certificates = []tls.Certificate{pair}
	}
	if f.Unix != "" && f.Proxy != "" {
		return errors.New("--unix and --proxy exclude each other: use one of them")
	}
	h.Proxy = f.Proxy
	if f.Unix != "" {
		h.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", f.Unix)
		}
	}
	return nil
}

// readPEM reads the file that a flag names; nil without one.
func readPEM(flag, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("%s: %s is empty: want a PEM file", flag, path)
	}
	return text, nil
}

// withoutPassword is a URL as results show it. It need not be well-formed: placeholders may follow
// the host.
func withoutPassword(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	authority := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool { return !strings.ContainsRune("/?#", r) }))]
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return address
	}
	user, _, secret := strings.Cut(authority[:at], ":")
	if !secret {
		return address
	}
	return scheme + "://" + user + ":xxxxx" + rest[at:]
}

// reach is the target of requests; a server must be there.
func reach(ctx context.Context, h loadgen.HTTPConfig) (*loadgen.HTTP, error) {
	target, err := loadgen.NewHTTP(h)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return target, target.Reach(ctx)
}
