package postgres

import "github.com/prometheus/client_golang/prometheus"

var (
	described = func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("patientapi_database_"+name, help, labels, nil)
	}
	connectionsDesc    = described("connections", "Connections to the database by what they do.", "state")
	maxConnectionsDesc = described("max_connections", "The most connections to the database that there may be.")
	connectsDesc       = described("connects_total", "Connections to the database that were made.")
	waitingDesc        = described("waiting", "Questions to the database that wait for a connection.")
	waitedDesc         = described("wait_seconds_total", "Time that questions to the database waited for a connection.")
	waitDesc           = described("wait_seconds", "The mean wait for a connection that the limiter last saw.")
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector: the use of the pool.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	pool, slots := s.pool.Stat(), s.slots.stats()
	gauge(connectionsDesc, float64(pool.AcquiredConns()), "used")
	gauge(connectionsDesc, float64(pool.IdleConns()), "idle")
	gauge(connectionsDesc, float64(pool.ConstructingConns()), "opening")
	gauge(maxConnectionsDesc, float64(pool.MaxConns()))
	gauge(waitingDesc, float64(slots.waiting))
	gauge(waitDesc, slots.last.Seconds())
	counter(connectsDesc, float64(pool.NewConnsCount()))
	counter(waitedDesc, slots.waited.Seconds())
}
