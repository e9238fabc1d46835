package embedded

import (
	"fmt"
	"log/slog"
)

// logger passes the server's messages on to a slog.Logger. A fatal message, after which the server
// would end the process, becomes the error of Start. After an error, watch checks whether the store
// still works.
type logger struct {
	log     *slog.Logger
	fatal   chan<- string
	trouble chan<- struct{}
}

func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  {}

func (l *logger) Errorf(format string, v ...any) {
	l.log.Error(fmt.Sprintf(format, v...))
	select {
	case l.trouble <- struct{}{}:
	default: // a check is already due
	}
}

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error(text)
	select {
	case l.fatal <- text:
	default:
	}
}
