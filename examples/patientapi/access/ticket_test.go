package access

import (
	"strings"
	"testing"
)

func TestATicketIsGoodForItsSubjectAlone(t *testing.T) {
	job := Principal{Subject: "export-1", Role: ExportJob, Scopes: []string{"system/*.rs"}}
	ticket := NewTicket(job.Subject)
	if !Ticket(ticket) || !Holds(job, ticket) || NewTicket(job.Subject) == ticket || strings.Contains(ticket, job.Subject) {
		t.Fatalf("%s", ticket)
	}
	for name, change := range map[string]func(*Principal){
		"another subject":     func(p *Principal) { p.Subject = "export-2" },
		"no subject":          func(p *Principal) { p.Subject = "" },
		"another role":        func(p *Principal) { p.Role, p.Scopes = Clinician, []string{"user/*.rs"} },
		"a token for less":    func(p *Principal) { p.Scopes = []string{"system/Patient.s"} },
		"a token for nothing": func(p *Principal) { p.Scopes = nil },
	} {
		other := job
		if change(&other); Holds(other, ticket) {
			t.Errorf("%s holds it", name)
		}
	}
	for _, wrong := range []string{"", "x", ticket[2:], ticket + "00", strings.ToUpper(ticket), "../" + ticket, ticket[:62] + "zz", strings.Repeat("0", 64)} {
		if Holds(job, wrong) || wrong != strings.Repeat("0", 64) && Ticket(wrong) {
			t.Errorf("%q is a ticket", wrong)
		}
	}
}

func TestAVisitRemembersATicketOfAnother(t *testing.T) {
	v := &Visit{Principal: Principal{Subject: "export-1", Role: ExportJob, Scopes: []string{"system/*.rs"}}, Resource: Patients, Action: ExportAll}
	if err := v.Claim(NewTicket("export-1")); err != nil || v.Denied() {
		t.Error(err)
	}
	if err := v.Claim(NewTicket("export-2")); err != ErrDenied || !v.Denied() || v.Touch("P000001") != ErrDenied {
		t.Error(err)
	}
}
