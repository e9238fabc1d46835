package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/spillway-go/spillway/loadgen"
)

// Connection says how the server is reached. Certificates and keys are the contents of PEM files.
type Connection struct {
	Insecure bool   `json:"insecure,omitempty"` // any TLS certificate will do
	CA       []byte `json:"ca,omitempty"`       // who may sign the server's certificate; empty: the system's roots
	Cert     []byte `json:"cert,omitempty"`     // the client's certificate, with those between it and its root
	Key      []byte `json:"key,omitempty"`      // of Cert; a secret. Empty: the key is in Cert
	Proxy    string `json:"proxy,omitempty"`    // URL
	Unix     string `json:"unix,omitempty"`     // path of a socket, in place of the URL's host
}

// Apply sets what c says in h.
func (c *Connection) Apply(h *loadgen.HTTPConfig) error {
	if c.Insecure || len(c.CA) > 0 || len(c.Cert) > 0 {
		h.TLS = &tls.Config{InsecureSkipVerify: c.Insecure}
	}
	if len(c.CA) > 0 {
		h.TLS.RootCAs = x509.NewCertPool()
		if !h.TLS.RootCAs.AppendCertsFromPEM(c.CA) {
			return errors.New("--cacert: no certificate in it: want a PEM file, with lines such as -----BEGIN CERTIFICATE-----")
		}
	}
	if len(c.Key) > 0 && len(c.Cert) == 0 {
		return errors.New("--key goes with --cert")
	}
	if len(c.Cert) > 0 {
		key := c.Key
		if len(key) == 0 {
			key = c.Cert
		}
		pair, err := tls.X509KeyPair(c.Cert, key)
		if err != nil {
			return fmt.Errorf("--cert and --key: %w: want PEM files of a certificate and its key", err)
		}
		h.TLS.Certificates = []tls.Certificate{pair}
	}
	if c.Unix != "" && c.Proxy != "" {
		return errors.New("--unix and --proxy exclude each other: use one of them")
	}
	h.Proxy = c.Proxy
	if c.Unix != "" {
		h.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", c.Unix)
		}
	}
	return nil
}
