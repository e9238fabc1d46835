package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/load/agents"
)

// wire is a NATS server as a bus.
type wire struct{ conn *nats.Conn }

// dial connects, with options besides those that s names.
func dial(s agents.Server, token, name string, options ...nats.Option) (*wire, error) {
	options = append(options, nats.Name(name), nats.Timeout(5*time.Second), nats.ReconnectWait(200*time.Millisecond))
	if token != "" {
		options = append(options, nats.Token(token))
	}
	if s.Creds != "" {
		options = append(options, nats.UserCredentials(s.Creds))
	}
	if s.CA != "" {
		options = append(options, nats.RootCAs(s.CA))
	}
	conn, err := nats.Connect(s.URL, options...)
	if err != nil {
		return nil, agents.Input(fmt.Errorf("the NATS server: %w: is it running, and are the credentials right?", err))
	}
	return &wire{conn}, nil
}

func (w *wire) close() {
	_ = w.conn.FlushTimeout(time.Second) // the last words, such as stop
	w.conn.Close()
}

// Publish sends data to all subscribers.
func (w *wire) Publish(subject string, data []byte) error { return w.conn.Publish(subject, data) }

// Request waits for an answer.
func (w *wire) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := w.conn.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Subscribe calls f with each message.
func (w *wire) Subscribe(subject string, f func([]byte, func([]byte))) (func(), error) {
	s, err := w.conn.Subscribe(subject, func(m *nats.Msg) {
		f(m.Data, func(answer []byte) { _ = m.Respond(answer) }) // without anybody who waits it does nothing
	})
	if err != nil {
		return nil, err
	}
	if err := s.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	if w.conn.IsConnected() {
		err = w.conn.Flush()
	}
	return func() { _ = s.Unsubscribe() }, err
}

// patient goes on trying to connect, then and whenever the server is gone, until the
// server refuses the credentials: then it calls refused.
func patient(log func(string), refused func(error)) []nats.Option {
	said := false // these are called one after the other
	found := func(text string) nats.ConnHandler {
		return func(*nats.Conn) { said = false; log(text) }
	}
	return []nats.Option{
		nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ConnectHandler(found("connected to the NATS server")),
		nats.ReconnectHandler(found("connected to the NATS server again")),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if !said && !errors.Is(err, nats.ErrNoServers) { // that is the first, and says no reason
				said = true
				log("the NATS server cannot be reached, trying on: " + err.Error())
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log("the NATS server is gone: " + err.Error())
			}
		}),
		nats.ClosedHandler(func(c *nats.Conn) { refused(c.LastError()) }),
	}
}
