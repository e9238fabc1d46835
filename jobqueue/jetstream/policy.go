package jetstream

import (
	"fmt"
	"slices"
	"strings"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// rule is a stream field that a promise of the queue depends on.
type rule struct {
	field string
	// differs returns the stream's value and the queue's value, if they differ.
	differs func(have, want *js.StreamConfig) (has, needs any, yes bool)
	// adopt sets the field to the queue's value; nil: no server can change the field.
	adopt func(have, want *js.StreamConfig)
}

func field[T comparable](name string, at func(*js.StreamConfig) *T) rule {
	r := fixed(name, at)
	r.adopt = func(have, want *js.StreamConfig) { *at(have) = *at(want) }
	return r
}

// fixed is a rule for a field that cannot change after the stream is created.
func fixed[T comparable](name string, at func(*js.StreamConfig) *T) rule {
	return rule{field: name, differs: func(have, want *js.StreamConfig) (any, any, bool) {
		return *at(have), *at(want), *at(have) != *at(want)
	}}
}

// absent is a rule for a field that must be empty.
func absent(name string, has func(*js.StreamConfig) bool, remove func(*js.StreamConfig)) rule {
	r := rule{field: name, differs: func(have, _ *js.StreamConfig) (any, any, bool) { return "some", "none", has(have) }}
	if remove != nil {
		r.adopt = func(have, _ *js.StreamConfig) { remove(have) }
	}
	return r
}

// policy is compared in every stream of a queue. Fields missing from policy do no harm, belong to
// Config, or belong to the server's operator: placement, compression, the name of a template.
var policy = []rule{
	fixed("Storage", func(c *js.StreamConfig) *js.StorageType { return &c.Storage }),
	fixed("Retention", func(c *js.StreamConfig) *js.RetentionPolicy { return &c.Retention }),
	fixed("PersistMode", func(c *js.StreamConfig) *js.PersistModeType { return &c.PersistMode }),
	fixed("Sealed", func(c *js.StreamConfig) *bool { return &c.Sealed }),
	fixed("DenyDelete", func(c *js.StreamConfig) *bool { return &c.DenyDelete }),
	fixed("DenyPurge", func(c *js.StreamConfig) *bool { return &c.DenyPurge }),
	fixed("AllowMsgCounter", func(c *js.StreamConfig) *bool { return &c.AllowMsgCounter }),
	absent("Mirror", func(c *js.StreamConfig) bool { return c.Mirror != nil }, nil),

	{"Subjects", func(have, want *js.StreamConfig) (any, any, bool) {
		return have.Subjects, want.Subjects, !slices.Equal(slices.Sorted(slices.Values(have.Subjects)), slices.Sorted(slices.Values(want.Subjects)))
	}, func(have, want *js.StreamConfig) { have.Subjects = want.Subjects }},
	field("Discard", func(c *js.StreamConfig) *js.DiscardPolicy { return &c.Discard }),
	field("DiscardNewPerSubject", func(c *js.StreamConfig) *bool { return &c.DiscardNewPerSubject }),
	field("MaxAge", func(c *js.StreamConfig) *time.Duration { return &c.MaxAge }),
	field("MaxMsgsPerSubject", func(c *js.StreamConfig) *int64 { return &c.MaxMsgsPerSubject }),
	field("MaxMsgSize", func(c *js.StreamConfig) *int32 { return &c.MaxMsgSize }),
	field("MaxConsumers", func(c *js.StreamConfig) *int { return &c.MaxConsumers }),
	field("NoAck", func(c *js.StreamConfig) *bool { return &c.NoAck }),
	{"AllowDirect", func(have, want *js.StreamConfig) (any, any, bool) {
		return have.AllowDirect, want.AllowDirect, want.AllowDirect && !have.AllowDirect // extra AllowDirect is fine
	}, func(have, _ *js.StreamConfig) { have.AllowDirect = true }},
	{"AllowAtomicPublish", func(have, want *js.StreamConfig) (any, any, bool) {
		return have.AllowAtomicPublish, want.AllowAtomicPublish, want.AllowAtomicPublish && !have.AllowAtomicPublish
	}, func(have, _ *js.StreamConfig) { have.AllowAtomicPublish = true }},
	field("ConsumerLimits", func(c *js.StreamConfig) *js.StreamConsumerLimits { return &c.ConsumerLimits }),
	absent("Sources", func(c *js.StreamConfig) bool { return len(c.Sources) > 0 }, func(c *js.StreamConfig) { c.Sources = nil }),
	absent("SubjectTransform", func(c *js.StreamConfig) bool { return c.SubjectTransform != nil }, func(c *js.StreamConfig) { c.SubjectTransform = nil }),
}

// unbounded is compared in the streams that must not lose messages for lack of room. The bounds of
// the stream of jobs belong to Config.
var unbounded = []rule{
	field("MaxMsgs", func(c *js.StreamConfig) *int64 { return &c.MaxMsgs }),
	field("MaxBytes", func(c *js.StreamConfig) *int64 { return &c.MaxBytes }),
}

// plain normalizes the values that mean "no bound".
func plain(c js.StreamConfig) js.StreamConfig {
	none := func(n *int64) {
		if *n <= 0 {
			*n = -1
		}
	}
	none(&c.MaxMsgs)
	none(&c.MaxBytes)
	none(&c.MaxMsgsPerSubject)
	if c.MaxMsgSize <= 0 {
		c.MaxMsgSize = -1
	}
	if c.MaxConsumers <= 0 {
		c.MaxConsumers = -1
	}
	return c
}

// adapt returns the existing stream's configuration, adjusted to the queue's needs, and the
// changes. The error names each field that cannot be changed, one on a line.
func adapt(have, want js.StreamConfig) (fit js.StreamConfig, changes []string, err error) {
	have, want = plain(have), plain(want)
	rules := policy
	if want.MaxMsgs == -1 {
		rules = slices.Concat(policy, unbounded)
	}
	var wrong []string
	for _, r := range rules {
		has, needs, differs := r.differs(&have, &want)
		switch {
		case !differs:
		case r.adopt == nil:
			wrong = append(wrong, fmt.Sprintf("%s of stream %s is %v, the queue needs %v", r.field, have.Name, has, needs))
		default:
			r.adopt(&have, &want)
			changes = append(changes, fmt.Sprintf("%s: %v, not %v", r.field, needs, has))
		}
	}
	if len(wrong) > 0 {
		return have, changes, misfit(have.Name, strings.Join(wrong, "\n"))
	}
	return have, changes, nil
}

// misfit returns the error for a stream that cannot be part of a queue.
func misfit(stream, why string) error {
	return fmt.Errorf("%w: %s: this cannot be changed; delete stream %s with all that is in it, or use another Config.Name", errUnfit, why, stream)
}

// sameLimits compares the fields that belong to Config.
func sameLimits(a, b js.StreamConfig) bool {
	return a.MaxMsgs == b.MaxMsgs && a.MaxBytes == b.MaxBytes && a.Duplicates == b.Duplicates &&
		a.Replicas == b.Replicas && a.AllowAtomicPublish == b.AllowAtomicPublish
}

// strays returns how a consumer differs from what the queue's promises depend on, and the adapted
// configuration. Jobs that a consumer has passed over do not come again: then the consumer must be
// made anew.
func strays(have, want js.ConsumerConfig) (fit js.ConsumerConfig, changes []string, anew bool) {
	differs := func(yes bool, format string, args ...any) bool {
		if yes {
			changes = append(changes, fmt.Sprintf(format, args...))
		}
		return yes
	}
	subjects := have.FilterSubjects
	if have.FilterSubject != "" {
		subjects = append(slices.Clone(subjects), have.FilterSubject)
	}
	anew = differs(!slices.Equal(subjects, []string{want.FilterSubject}), "FilterSubject: %s, not %s", want.FilterSubject, strings.Join(subjects, " "))
	anew = differs(have.MaxDeliver > 0, "MaxDeliver: -1, not %d", have.MaxDeliver) || anew
	differs(have.HeadersOnly, "HeadersOnly: false, not true")
	differs(len(have.BackOff) > 0, "BackOff: none, not %v", have.BackOff)
	differs(have.MaxRequestExpires > 0 && have.MaxRequestExpires < sentryWait, "MaxRequestExpires: none, not %v", have.MaxRequestExpires)
	tight := 0 < have.MaxAckPending && have.MaxAckPending < want.MaxAckPending
	differs(tight, "MaxAckPending: %d, not %d", want.MaxAckPending, have.MaxAckPending)
	differs(have.InactiveThreshold > 0, "InactiveThreshold: none, not %v", have.InactiveThreshold)
	differs(have.MaxRequestMaxBytes > 0, "MaxRequestMaxBytes: none, not %d", have.MaxRequestMaxBytes)
	fit = have
	fit.FilterSubject, fit.FilterSubjects, fit.MaxDeliver = want.FilterSubject, nil, -1
	fit.HeadersOnly, fit.BackOff, fit.MaxRequestExpires, fit.MaxRequestMaxBytes = false, nil, 0, 0
	fit.InactiveThreshold = 0
	if tight {
		fit.MaxAckPending = want.MaxAckPending
	}
	return fit, changes, anew
}
