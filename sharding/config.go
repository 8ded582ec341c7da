package sharding

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// ErrInvalidConfig means that a Config can't be used, or that there is no such static shard. Types: [*ConfigError],
// [*RangeError]. [Join] returns all errors of a Config, joined.
var ErrInvalidConfig = errors.New("invalid configuration of a shard")

// ConfigError is the error for one field of a Config.
type ConfigError struct{ Field, Problem string }

// Error implements error.
func (e *ConfigError) Error() string { return "sharding.Config." + e.Field + ": " + e.Problem }

// Is reports whether target is ErrInvalidConfig.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }

// Config describes a group and one of its members. All members must have the same Namespace, Name and
// ClockSkew. Members whose LeaseDuration differs, as during an update of a Deployment, respect the longer one.
type Config struct {
	// Namespace is the namespace of the Leases. It is required.
	Namespace string
	// Name is the name of the group, a DNS label such as "widget-controller". It is required. The Leases of
	// the group have it as a label.
	Name string
	// Identity is the name of this member, such as the name of the pod. It is required, and unique in the
	// group. Any text of up to 253 bytes is valid. A process that starts with the identity of a killed
	// process waits until the Lease of that process has expired, and gets its seat if the seat is free.
	Identity string
	// LeaseDuration is how long other members wait for a member that does not renew its Lease, in whole
	// seconds, at most 2^31-1. The default is 15 seconds.
	LeaseDuration time.Duration
	// RenewDeadline is how long a member acts on its slots after the last renewal of its Lease. The default is
	// two thirds of LeaseDuration. It must be at least 50 ms, and at most LeaseDuration minus ClockSkew.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two renewals, and between two attempts. The default is a fifth of
	// RenewDeadline. It must be at least 10 ms, and RenewDeadline more than 1.2 times RetryPeriod.
	RetryPeriod time.Duration
	// ClockSkew is how much the clocks of two members may differ in the time they measure for one
	// LeaseDuration. The times that the clocks show do not matter. ClockSkew must be less than LeaseDuration. The
	// default is a fifteenth of LeaseDuration.
	ClockSkew time.Duration
}

const (
	longest  = math.MaxInt32 * time.Second // of LeaseDuration: leaseDurationSeconds is an int32
	shortest = 10 * time.Millisecond       // of RetryPeriod
)

// withDefaults returns the configuration with its defaults, or the errors of its fields.
func (c Config) withDefaults() (Config, error) {
	if c.LeaseDuration == 0 {
		c.LeaseDuration = 15 * time.Second
	}
	given := c // without what is derived from other fields
	if c.RenewDeadline == 0 {
		c.RenewDeadline = c.LeaseDuration * 2 / 3
	}
	if c.RetryPeriod == 0 {
		c.RetryPeriod = c.RenewDeadline / 5
	}
	if c.ClockSkew == 0 {
		c.ClockSkew = c.LeaseDuration / 15
	}
	var problems []error
	report := func(invalid bool, field, problem string) {
		if invalid {
			problems = append(problems, &ConfigError{field, problem})
		}
	}
	for _, name := range []struct{ field, value string }{{"Namespace", c.Namespace}, {"Name", c.Name}} {
		wrong := content.IsDNS1123Label(name.value)
		if name.value == "" {
			report(true, name.field, "it is empty")
			continue
		}
		report(len(wrong) > 0, name.field, fmt.Sprintf("%q: %s", name.value, strings.Join(wrong, "; ")))
	}
	report(c.Identity == "", "Identity", "it is empty")
	report(len(c.Identity) > 253, "Identity", "it has more than 253 bytes")
	named := len(problems)
	whole := c.LeaseDuration >= time.Second && c.LeaseDuration%time.Second == 0
	report(!whole, "LeaseDuration", fmt.Sprintf("%v is not a positive number of whole seconds", c.LeaseDuration))
	report(whole && c.LeaseDuration > longest, "LeaseDuration", fmt.Sprintf("%v is more than %v", c.LeaseDuration, longest))
	report(given.ClockSkew < 0, "ClockSkew", fmt.Sprintf("%v is negative", c.ClockSkew))
	report(whole && given.ClockSkew >= c.LeaseDuration, "ClockSkew", fmt.Sprintf("%v is not less than LeaseDuration, %v", c.ClockSkew, c.LeaseDuration))
	atLeast := func(least, d time.Duration, field string) {
		report(d != 0 && d < least, field, fmt.Sprintf("%v is less than %v", d, least))
	}
	atLeast(5*shortest, given.RenewDeadline, "RenewDeadline")
	atLeast(shortest, given.RetryPeriod, "RetryPeriod")
	if len(problems) > named { // durations that are derived from a wrong one, or are compared with it, say nothing new
		return c, errors.Join(problems...)
	}
	report(c.RenewDeadline > c.LeaseDuration-c.ClockSkew, "RenewDeadline",
		fmt.Sprintf("%v is more than LeaseDuration minus ClockSkew, %v", c.RenewDeadline, c.LeaseDuration-c.ClockSkew))
	report(c.RetryPeriod >= c.RenewDeadline || c.RenewDeadline <= c.RetryPeriod+c.RetryPeriod/5, "RetryPeriod",
		fmt.Sprintf("1.2 times %v is not less than RenewDeadline, %v", c.RetryPeriod, c.RenewDeadline))
	return c, errors.Join(problems...)
}

func (c Config) timing() timing {
	return timing{lease: c.LeaseDuration, renew: c.RenewDeadline, retry: c.RetryPeriod, skew: c.ClockSkew}
}
