package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
)

// metrics are those of the audit; none if it is off.
func (a *auditing) metrics() []prometheus.Collector {
	if a == nil {
		return nil
	}
	return []prometheus.Collector{auditMetrics{a.writer}}
}

// auditMetrics shows the counts of a writer.
type auditMetrics struct{ writer *audit.Writer }

var (
	auditRecords = prometheus.NewDesc("patientapi_audit_records_total", "Accesses, by whether they are on record.", []string{"result"}, nil)
	auditCommits = prometheus.NewDesc("patientapi_audit_commits_total", "Commits of records, by their result.", []string{"result"}, nil)
	auditWaiting = prometheus.NewDesc("patientapi_audit_waiting", "Answers that wait for their record.", nil, nil)
	auditFailing = prometheus.NewDesc("patientapi_audit_failing", "1 while accesses cannot be put on record.", nil, nil)
	auditLost    = prometheus.NewDesc("patientapi_audit_lost", "Accesses that are not on record and that no record counts yet.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m auditMetrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m auditMetrics) Collect(ch chan<- prometheus.Metric) {
	s := m.writer.Stats()
	counter := func(d *prometheus.Desc, n uint64, result string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), result)
	}
	counter(auditRecords, s.Recorded, "recorded")
	counter(auditRecords, s.Failed, "failed")
	counter(auditCommits, s.Commits, "committed")
	counter(auditCommits, s.Failures, "failed")
	ch <- prometheus.MustNewConstMetric(auditWaiting, prometheus.GaugeValue, float64(s.Waiting))
	failing := 0.0
	if s.Failing {
		failing = 1
	}
	ch <- prometheus.MustNewConstMetric(auditFailing, prometheus.GaugeValue, failing)
	ch <- prometheus.MustNewConstMetric(auditLost, prometheus.GaugeValue, float64(s.Lost))
}
