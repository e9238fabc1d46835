package app

import (
	"os"
	"os/signal"
	"syscall"
)

// heedHangups lets the service live through SIGHUP, which asks a daemon to read its
// settings again, and says that there is nothing to do. It used to end the process at
// once, and what was under way with it.
func (s *service) heedHangups() (stop func()) {
	asked, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for range asked {
			s.logger.Info("SIGHUP: serving on; certificate and keys are read again by themselves when they change, other settings at the next start; SIGTERM stops")
		}
	}()
	return func() {
		signal.Stop(asked)
		close(asked)
		<-ended
	}
}
