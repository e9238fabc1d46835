package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/app"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	auditpostgres "github.com/spillway-go/spillway/examples/patientapi/audit/postgres"
	auditsqlite "github.com/spillway-go/spillway/examples/patientapi/audit/sqlite"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/token"
	"github.com/spillway-go/spillway/lab/contestant"
	plan "github.com/spillway-go/spillway/lab/overload"
)

// audited is the whole service, as its command runs it, over a store without added latency
// or errors.
func audited(ctx context.Context, in plan.Audited, ready contestant.Ready) (_ *plan.Recorded, err error) {
	folder, err := os.MkdirTemp("", "spillway-audit-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	c, authorization, err := serviceIn(folder, in)
	if err != nil {
		return nil, err
	}
	out, stdout := io.Pipe()
	var stderr strings.Builder
	ended := make(chan error, 1)
	go func() {
		err := c.Run(ctx, stdout, &stderr)
		stdout.CloseWithError(err)
		ended <- err
	}()
	lines := bufio.NewReader(out)
	var begins app.Ready
	if err := decode(lines, &begins); err != nil {
		return nil, fmt.Errorf("the service did not start: %w", errors.Join(err, <-ended))
	}
	if err := ready(plan.Address{Address: begins.Addr, Authorization: authorization}); err != nil {
		return nil, err
	}
	var report app.Report
	if err := errors.Join(decode(lines, &report), <-ended); err != nil {
		return nil, err
	}
	r := report.Requests
	said := &plan.Recorded{Answers: r.OK + r.Rejected + r.BadInput + r.Error + r.Timeout}
	if report.Audit != nil {
		said.Records, said.Commits = report.Audit.Recorded, report.Audit.Commits
		said.Verified, err = verified(context.WithoutCancel(ctx), c.Audit.DB, in.URL)
	}
	return said, err
}

// serviceIn is the command of a service that keeps everything in a folder, and the header
// with the token of a clinician.
func serviceIn(folder string, in plan.Audited) (c app.Command, authorization string, err error) {
	c = app.Default()
	c.Listen.Addr, c.JSON, c.Pattern.SlowStart = "127.0.0.1:0", true, 0
	c.Store.Kind, c.Store.DB, c.Store.Patients = "sqlite", filepath.Join(folder, "patients.db"), in.Patients
	c.Faults = app.FaultFlags{}
	c.Audit.Mode, c.Auth.DevelopmentKeys = "off", folder
	if in.URL != "" {
		c.Store.Kind, c.Store.DB = in.URL, ""
	}
	if in.Audit {
		c.Audit.Mode = "on"
		if in.URL == "" {
			c.Audit.DB = filepath.Join(folder, "audit.db")
		}
	}
	if !in.Adaptive {
		c.Pattern.Name = patterns.Naive
	}
	signer, err := token.Development(folder)
	if err != nil {
		return c, "", err
	}
	text, err := signer.Mint(token.Grant{Role: access.Clinician, Lifetime: time.Hour})
	return c, "Bearer " + text, err
}

func decode(lines *bufio.Reader, into any) error {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// verified reads the whole chain again and counts its records; none if anything is wrong.
func verified(ctx context.Context, file, url string) (uint64, error) {
	var storage audit.Storage
	var err error
	if file != "" {
		storage, err = auditsqlite.Open(ctx, file)
	} else {
		storage, err = auditpostgres.Open(ctx, url, "")
	}
	if err != nil {
		return 0, err
	}
	res, err := audit.Verify(ctx, storage, nil, audit.Head{}, nil)
	if err := errors.Join(err, storage.Close()); err != nil {
		return 0, err
	}
	if len(res.Faults) > 0 {
		return 0, fmt.Errorf("the chain of records is broken: %v", res.Faults[0])
	}
	return uint64(res.Records), nil
}
