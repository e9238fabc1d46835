// Package report presents the results of an experiment: a summary for the terminal and
// one HTML file that needs no network. Both are made from the stored results and runs
// alone, so that they can be made again at any time.
package report

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Write puts results.json and report.html into dir, each atomically. Nothing
// is written when either cannot be made.
func Write(dir string, fam ledger.Family, res results.Results, runs []results.Run) error {
	if res.Schema == "" {
		res.Schema = results.Schema
	}
	var page bytes.Buffer
	if err := HTML(&page, fam, res, runs); err != nil {
		return fmt.Errorf("the report cannot be made: %w", err)
	}
	if err := results.WriteResults(dir, res); err != nil {
		return err
	}
	return results.WriteFile(filepath.Join(dir, results.ReportFile), page.Bytes())
}
