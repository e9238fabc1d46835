package loadgen

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
)

// shortage is something that the generator's machine can run out of.
type shortage struct {
	of     string
	errors []error // Windows has numbers of its own
	remedy string
}

var shortages = []shortage{
	{"open files", []error{syscall.EMFILE, syscall.Errno(10024)}, "raise the limit with ulimit -n 65536, or have fewer requests in flight"},
	{"open files of the whole machine", []error{syscall.ENFILE}, "raise fs.file-max, or send from several machines"},
	{"local addresses and ports", []error{syscall.EADDRNOTAVAIL, syscall.Errno(10049)}, "keep connections alive, widen net.ipv4.ip_local_port_range, or send from more addresses or machines"},
	{"buffers for sockets", []error{syscall.ENOBUFS, syscall.Errno(10055)}, "have fewer requests in flight, or send from several machines"},
	{"memory", []error{syscall.ENOMEM}, "have fewer requests in flight, or send from several machines"},
}

// shortageBehind returns the shortage of this machine that err comes from, or nil.
func shortageBehind(err error) *shortage {
	lookup, _ := errors.AsType[*net.DNSError](err) // keeps the text of an error and not the error
	for i := range shortages {
		s := &shortages[i]
		if slices.ContainsFunc(s.errors, func(e error) bool {
			return errors.Is(err, e) || lookup != nil && strings.HasSuffix(lookup.Err, ": "+e.Error())
		}) {
			return s
		}
	}
	return nil
}

// text begins the text of a Cause.
func (s *shortage) text() string { return "out of " + s.of + ": " }

// Void returns why the result says nothing about its target: the machine of the generator ran out
// of files, ports or the like, and requests were not sent. Void returns one sentence that says what
// to do, or an empty string if the result stands.
func (r *Result) Void() string {
	var local uint64
	var worst Cause
	for _, c := range r.Causes {
		if c.Local {
			local += c.Count
			if c.Count > worst.Count {
				worst = c
			}
		}
	}
	if local == 0 {
		return ""
	}
	for _, s := range shortages {
		if strings.HasPrefix(worst.Text, s.text()) {
			return fmt.Sprintf("The generator's machine ran out of %s: %d of %d requests failed because of that, and say nothing about the target; %s.", s.of, local, r.Offered, s.remedy)
		}
	}
	return fmt.Sprintf("The generator's machine ran out of something: %d of %d requests failed because of that, and say nothing about the target (%s).", local, r.Offered, worst.Text)
}
