package statuspage

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gvrkit/gvrkit/status"
)

// question is what a request asks for. Equal questions have equal answers.
type question struct {
	format   format
	resource string       // in detail; empty: the table
	state    status.State // only informers in that one
	text     string       // only informers with that in name, reason or owners
	offset   int

	base   string // the path of the table, relative to that of the request
	unsure bool   // if there is no such resource, the table is meant
}

// textAtMost is how long a filter's text may be.
const textAtMost = 200

// resourceAtMost is how long the name of a resource may be: a plural, a version and a group are
// not longer.
const resourceAtMost = 512

// newQuestion reads r. What it does not know it overlooks, as the other pages of its kind do.
func newQuestion(r *http.Request) (question, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return question{}, errors.New("the parameters can't be read")
	}
	q := question{resource: values.Get("resource"), state: status.State(values.Get("state")), text: strings.TrimSpace(values.Get("q"))}
	q.format, err = formatOf(values.Get("format"), r.Header)
	if err != nil {
		return question{}, err
	}
	if q.state != "" {
		known := slices.IndexFunc(states, func(s status.State) bool { return strings.EqualFold(string(s), string(q.state)) })
		if known < 0 {
			return question{}, errors.New("state is one of " + stateNames())
		}
		q.state = states[known]
	}
	if len(q.resource) > resourceAtMost {
		return question{}, fmt.Errorf("resource has at most %d bytes", resourceAtMost)
	}
	if len(q.text) > textAtMost {
		return question{}, fmt.Errorf("q has at most %d bytes", textAtMost)
	}
	if offset := values.Get("offset"); offset != "" {
		q.offset, err = strconv.Atoi(offset)
		if err != nil || q.offset < 0 {
			return question{}, errors.New("offset is a number, and not below zero")
		}
	}
	return q, nil
}

// matches reports whether i is among the informers that q asks for.
func (q question) matches(i *status.Informer) bool {
	if q.state != "" && i.State != q.state {
		return false
	}
	if q.text == "" {
		return true
	}
	text := strings.ToLower(q.text)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return has(i.Name()) || has(string(i.Reason)) || slices.ContainsFunc(i.Owners, func(o status.Owner) bool { return has(o.Name) })
}

// link returns a relative reference to the answer to q, which works wherever the page is
// mounted.
func (q question) link() string {
	values := url.Values{}
	set := func(key, value string) {
		if value != "" {
			values.Set(key, value)
		}
	}
	set("resource", q.resource)
	set("state", string(q.state))
	set("q", q.text)
	set("format", string(q.format))
	if q.offset > 0 {
		values.Set("offset", strconv.Itoa(q.offset))
	}
	return q.base + "?" + values.Encode()
}

// key returns what questions with equal answers have in common.
func (q question) key() string { return strconv.FormatBool(q.unsure) + q.link() }
