package app

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
)

// TLSFlags say how the connections of clients are encrypted.
type TLSFlags struct {
	Cert string `help:"File of the certificate chain of the service; then clients connect by TLS, of version 1.2 or later. A new certificate is taken without a restart." env:"SPILLWAY_TLS_CERT" placeholder:"FILE"`
	Key  string `help:"File of the certificate's private key." env:"SPILLWAY_TLS_KEY" placeholder:"FILE"`
}

func (f TLSFlags) check() error {
	if (f.Cert == "") != (f.Key == "") {
		return usagef("tls-cert and tls-key: give both, or neither")
	}
	_, err := f.config(nil)
	return err
}

// config returns how to encrypt; nil for not at all.
func (f TLSFlags) config(logger *slog.Logger) (*tls.Config, error) {
	if f.Cert == "" {
		return nil, nil
	}
	c, err := readCertificate(f, logger)
	if err != nil {
		return nil, usagef("tls-cert and tls-key: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

// serve returns how srv serves a listener.
func (f TLSFlags) serve(srv *http.Server, logger *slog.Logger) (func(net.Listener) error, error) {
	cfg, err := f.config(logger)
	if cfg == nil || err != nil {
		return srv.Serve, err
	}
	srv.TLSConfig = cfg
	return func(l net.Listener) error { return srv.ServeTLS(l, "", "") }, nil
}

func (f TLSFlags) scheme() string {
	if f.Cert == "" {
		return "http"
	}
	return "https"
}

// curl is what curl must be told, with a space behind.
func (f TLSFlags) curl() string {
	if f.Cert == "" {
		return ""
	}
	return "--cacert '" + strings.ReplaceAll(f.Cert, "'", `'\''`) + "' "
}
