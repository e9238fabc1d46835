package agents

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// tokenVariable holds a token for the NATS server. It is no flag: other users of a machine see those.
const tokenVariable = "SPILLWAY_NATS_TOKEN"

// Server says where the NATS server is through which agents are reached. Its fields are flags of the
// commands on both sides.
type Server struct {
	URL       string `name:"nats" group:"Agents" placeholder:"URL" help:"The NATS server of the agents, such as nats://nats:4222 or tls://nats.example:4222. Credentials do not belong here, where other users of the machine see them: set SPILLWAY_NATS_TOKEN, or name a file."`
	TokenFile string `name:"nats-token-file" group:"Agents" placeholder:"FILE" help:"A file with the token of the NATS server, in place of SPILLWAY_NATS_TOKEN."`
	Creds     string `name:"nats-creds" group:"Agents" placeholder:"FILE" help:"A file with credentials, as nsc makes them."`
	CA        string `name:"nats-ca" group:"Agents" placeholder:"FILE" help:"Certificates of those that may sign the NATS server's; otherwise the system's."`
}

// Check refuses what cannot work. args are those of the process.
func (s *Server) Check(args []string) error {
	if s.URL == "" {
		return errors.New("--nats is empty: want a URL such as nats://localhost:4222")
	}
	for one := range strings.SplitSeq(s.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return errors.New("--nats: want a URL such as nats://localhost:4222 or tls://nats.example:4222") // without the URL: it may hold a password
		}
		if u.User != nil && slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "@"+u.Host) }) {
			return fmt.Errorf("--nats: other users of this machine see the credentials in it: set %s or use --nats-token-file or --nats-creds", tokenVariable)
		}
	}
	return nil
}

// Token returns the token that the file or the environment names; empty if there is none.
func (s *Server) Token() (string, error) {
	if s.TokenFile == "" {
		return os.Getenv(tokenVariable), nil
	}
	text, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--nats-token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Local returns the environment in which a process finds a server on this machine.
func Local(url, token string) []string {
	return []string{"SPILLWAY_AGENT_NATS=" + url, tokenVariable + "=" + token}
}
