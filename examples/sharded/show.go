package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gvrkit/gvrkit/sharding"
)

// state describes a process in words.
func (r row) state() string {
	switch {
	case r.ended:
		return "ended: " + r.why
	case r.last.Reason != "":
		return string(r.last.Reason)
	case r.last.Pending > 0:
		return fmt.Sprintf("waits for %d slots", r.last.Pending)
	case r.last.LettingGo > 0:
		return fmt.Sprintf("lets %d slots go", r.last.LettingGo)
	case r.last.Loading:
		return "loading"
	case r.last.ByClient:
		return "ready; the server sends all objects"
	}
	return "ready"
}

// hint says how to kill the first process that runs.
func hint(rows []row) string {
	for _, r := range rows {
		if !r.ended {
			return fmt.Sprintf("kill one: kill -9 %d", r.pid)
		}
	}
	return ""
}

const slotsInLine = 64

// ownersOf returns a character for each slot: the last digit of the process that has it, or a dot.
func ownersOf(rows []row) []byte {
	owners := bytes.Repeat([]byte{'.'}, sharding.SlotCount)
	for i, r := range rows {
		for _, slot := range r.last.Slots {
			owners[slot] = byte('0' + i%10)
		}
	}
	return owners
}

// table shows rows in place, on a terminal, and below them which row has each slot.
type table struct {
	out   io.Writer
	lines int // of the table that is shown
}

func newTable(out io.Writer) *table { return &table{out: out} }

func (t *table) show(rows []row) {
	var text strings.Builder
	if t.lines > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\x1b[J", t.lines) // up, and clear to the end
	}
	fmt.Fprintf(&text, "%-10s %8s %6s %8s %8s  %s\n", "MEMBER", "PID", "SLOTS", "OBJECTS", "HANDLED", "STATE")
	for _, r := range rows {
		fmt.Fprintf(&text, "%-10s %8d %6d %8d %8d  %s\n", r.name, r.pid, len(r.last.Slots), r.last.Objects, r.last.Handled, r.state())
	}
	owners := ownersOf(rows)
	for part := range slices.Chunk(owners, slotsInLine) {
		fmt.Fprintf(&text, "%s\n", part)
	}
	fmt.Fprintf(&text, "%s\n", hint(rows))
	t.lines = len(rows) + len(owners)/slotsInLine + 2
	fmt.Fprint(t.out, text.String())
}

// plain prints a line when the slots or the state of a process have changed, for output that is not a terminal.
type plain struct {
	out  io.Writer
	last map[string]string
}

func newPlain(out io.Writer) *plain { return &plain{out: out, last: map[string]string{}} }

func (p *plain) show(rows []row) {
	for _, r := range rows {
		if text := fmt.Sprintf("%d slots, %s", len(r.last.Slots), r.state()); p.last[r.name] != text {
			p.last[r.name] = text
			fmt.Fprintf(p.out, "%s pid %d: %s, %d objects\n", r.name, r.pid, text, r.last.Objects)
		}
	}
	if text := hint(rows); p.last[""] != text {
		p.last[""] = text
		fmt.Fprintln(p.out, text)
	}
}
