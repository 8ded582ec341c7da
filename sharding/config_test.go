package sharding

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestConfig_HasDefaultsOfLeaderElection(t *testing.T) {
	got, err := Config{Namespace: "ns", Name: "widgets", Identity: "me"}.withDefaults()
	want := Config{
		Namespace: "ns", Name: "widgets", Identity: "me", LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ClockSkew: time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestConfig_NamesTheFieldsThatAreWrong(t *testing.T) {
	valid := Config{
		Namespace: "ns", Name: "widgets", Identity: "me", LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ClockSkew: time.Second,
	}
	for _, test := range []struct {
		change func(*Config)
		want   []string
	}{
		{func(*Config) {}, nil},
		{func(c *Config) { c.RenewDeadline = 14 * time.Second }, nil},
		{func(c *Config) { c.RenewDeadline = 14*time.Second + 1 }, []string{"RenewDeadline"}},
		{func(c *Config) { c.RetryPeriod = 8 * time.Second }, nil},
		{func(c *Config) { c.RetryPeriod = 8400 * time.Millisecond }, []string{"RetryPeriod"}},
		{func(c *Config) { c.RetryPeriod = -1 }, []string{"RetryPeriod"}},
		{func(c *Config) { c.RetryPeriod = math.MaxInt64 }, []string{"RetryPeriod"}},
		{func(c *Config) { c.RetryPeriod = 10 * time.Millisecond }, nil},
		{func(c *Config) { c.RetryPeriod = 10*time.Millisecond - 1 }, []string{"RetryPeriod"}},
		{func(c *Config) { c.RenewDeadline, c.RetryPeriod = 50*time.Millisecond, 0 }, nil},
		{func(c *Config) { c.RenewDeadline, c.RetryPeriod = 50*time.Millisecond-1, 0 }, []string{"RenewDeadline"}},
		{func(c *Config) { c.ClockSkew = math.MaxInt64 }, []string{"ClockSkew"}},
		{func(c *Config) { c.ClockSkew = 15 * time.Second }, []string{"ClockSkew"}},
		{func(c *Config) { c.ClockSkew = 15*time.Second - 1 }, []string{"RenewDeadline"}},
		{func(c *Config) { c.Name, c.RenewDeadline = "", 14*time.Second+1 }, []string{"Name", "RenewDeadline"}},
		{func(c *Config) { c.RenewDeadline, c.RetryPeriod = -2, -4 }, []string{"RenewDeadline", "RetryPeriod"}},
		{func(c *Config) { c.ClockSkew = -1 }, []string{"ClockSkew"}},
		{func(c *Config) { c.ClockSkew = 6 * time.Second }, []string{"RenewDeadline"}},
		{func(c *Config) { c.LeaseDuration = 15500 * time.Millisecond }, []string{"LeaseDuration"}},
		{func(c *Config) { c.LeaseDuration = math.MaxInt32 * time.Second }, nil},
		{func(c *Config) { c.LeaseDuration = (math.MaxInt32 + 1) * time.Second }, []string{"LeaseDuration"}},
		{func(c *Config) {
			*c = Config{Namespace: "ns", Name: "widgets", Identity: "me", LeaseDuration: -time.Second}
		}, []string{"LeaseDuration"}},
		{func(c *Config) { *c = Config{Namespace: "ns", Name: "widgets", Identity: "me", ClockSkew: -1} }, []string{"ClockSkew"}},
		{func(c *Config) { *c = Config{Namespace: "ns", Name: "widgets", Identity: "me", RenewDeadline: -1} }, []string{"RenewDeadline"}},
		{func(c *Config) { c.Namespace, c.Name, c.Identity = "", "a/b", "" }, []string{"Namespace", "Name", "Identity"}},
		{func(c *Config) { c.Identity = strings.Repeat("x", 254) }, []string{"Identity"}},
		{func(c *Config) { c.Identity = "Host_1/2" }, nil},
	} {
		c := valid
		test.change(&c)
		_, err := c.withDefaults()
		var got []string
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range joined.Unwrap() {
				if wrong, is := errors.AsType[*ConfigError](one); is {
					got = append(got, wrong.Field)
				}
			}
		}
		if !slices.Equal(got, test.want) || (err != nil) != errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%+v: error %v, want fields %v", c, err, test.want)
		}
	}
}

func TestConfig_EmptyFieldsAreNamed(t *testing.T) {
	_, err := Config{}.withDefaults()
	for _, field := range []string{"Namespace", "Name", "Identity"} {
		if want := "sharding.Config." + field + ": it is empty"; err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), want) {
			t.Errorf("error %v, want a line %q", err, want)
		}
	}
}

func TestConfig_ZeroLeaseDurationsAreRefused(t *testing.T) {
	for _, d := range []time.Duration{-time.Second, 1} {
		_, err := Config{Namespace: "ns", Name: "widgets", Identity: "me", LeaseDuration: d}.withDefaults()
		if !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%v: error %v", d, err)
		}
	}
}
