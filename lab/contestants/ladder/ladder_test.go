package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ladder"
)

func TestMain(m *testing.M) { labtest.Main(m, roles) }

// everyServer is every kind with every set of savings.
func everyServer() []ladder.Server {
	all := []ladder.Server{{Kind: ladder.NetHTTPReads}}
	for _, asks := range []string{"", ladder.HostAlone, ladder.Posted} {
		all = append(all, ladder.Server{Kind: ladder.NetHTTP, Asks: asks}, ladder.Server{Kind: ladder.FastHTTP, Asks: asks})
	}
	for save := range ladder.AllRungs + 1 {
		all = append(all, ladder.Server{Save: save})
	}
	return all
}

func TestEveryServerPlaysItsTurn(t *testing.T) {
	for _, s := range everyServer() {
		var c client
		addr := ""
		p := player(s, Order{Conns: 3}, func(method string, arg, _ any) error {
			switch method {
			case "client.Open":
				addr = arg.(Order).Addr
				return errors.Join(c.Open(arg.(Order), nil), rightAnswer(addr))
			case "client.Send":
				return c.Send(arg.(int), nil)
			}
			return c.Close(0, nil)
		})
		if err := p.Ready(40); err != nil {
			t.Fatal(p.Name, err)
		}
		p.Block(40)
		if err := p.Done(); err != nil {
			t.Error(p.Name, err)
		}
		if _, err := net.Dial("tcp", addr); err == nil {
			t.Errorf("%s still listens", p.Name)
		}
	}
}

// rightAnswer asks once and reads the answer with net/http.
func rightAnswer(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, wire); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != wireBody || res.StatusCode != 200 || res.Header.Get(echoed) != "4bf92f3577b34da6" ||
		res.Header.Get("Content-Type") != jsonType || res.Header.Get("Date") == "" {
		return errors.New("a wrong answer: " + string(body))
	}
	return nil
}

func TestTheClientRefusesAWrongAnswer(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n" + string(make([]byte, 1024))} {
		a, b := net.Pipe()
		go func() {
			_, _ = io.ReadFull(b, make([]byte, len(wire)))
			_, _ = io.WriteString(b, answer)
			b.Close()
		}()
		if err := ask(a, []byte(wire), make([]byte, 1024)); err == nil {
			t.Errorf("%.30q was accepted", answer)
		}
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	c := experiment.Sized[ladder.Config]("quick")
	c.Connections, c.Rounds, c.Time = 2, 5, 100*time.Microsecond
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 1, Progress: experiment.NewProgress(io.Discard, false, 0)}
	res, runs, err := s.Run(t.Context(), ladder.Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			lost := strings.Contains(a.Why, "is missing in repeat") || strings.Contains(a.Why, "is no value that it can have")
			if a.Missing && !lost { // in so short a time the lead may be lost in noise
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
	}
	for _, r := range runs {
		if r.Killed != "" || r.Elapsed <= 0 || !(r.Extra["cpu_us"] > 0) {
			t.Errorf("%s, %s: %+v", r.Setup, r.Pattern, r)
		}
	}
}

func TestAMeasurementThatIsStoppedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := play(ctx, ladder.Game{Client: "127.0.0.1:1"}); err == nil {
		t.Error("no error")
	}
}
