//go:build !linux

package probe

func cpuSeconds() float64 { return 0 }

type rss struct{}

func (rss) reset()       {}
func (rss) peak() uint64 { return 0 }
