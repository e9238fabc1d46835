package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// client posts spans in OTLP's protobuf over HTTP. It is an otlptrace.Client.
type client struct {
	url    string
	header http.Header
	http   *http.Client
}

func newClient(endpoint, headers string) (*client, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the OTLP endpoint is no base URL: want one such as http://127.0.0.1:4318")
	}
	if u.User != nil {
		return nil, errors.New("the OTLP endpoint has credentials in it, which end up in logs: put them into OTEL_EXPORTER_OTLP_HEADERS")
	}
	c := &client{url: u.JoinPath("v1/traces").String(), header: http.Header{}}
	for pair := range strings.SplitSeq(headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value with percent-encoded values") // and may be secret
		}
		c.header.Set(name, value)
	}
	c.header.Set("Content-Type", "application/x-protobuf")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = 1, time.Minute
	c.http = &http.Client{
		Transport: transport, Timeout: uploadTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the headers are for one host
	}
	return c, nil
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error { c.http.CloseIdleConnections(); return nil }

// UploadTraces implements otlptrace.Client. On the wire TracesData is the request of
// OTLP; the type of that name would bring gRPC.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = c.header
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the OTLP endpoint answered %s", resp.Status)
	}
	return nil
}
