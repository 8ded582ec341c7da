package main

import (
	"fmt"
	"io"
	"time"
)

// progress tells on standard error how far the benchmark has come.
type progress struct {
	out        io.Writer
	start      time.Time
	done, left int // work
}

func newProgress(out io.Writer, steps []step, rounds int) *progress {
	p := &progress{out: out, start: time.Now()}
	for _, st := range steps {
		p.left += st.work() * len(st.systems) * (rounds + 1)
	}
	return p
}

// say prints a line.
func (p *progress) say(format string, args ...any) {
	fmt.Fprintf(p.out, "bench: "+format+"\n", args...)
}

// ran tells of one run of a step.
func (p *progress) ran(st step, what string, took time.Duration) {
	p.done += st.work()
	p.left -= st.work()
	left := time.Duration(float64(time.Since(p.start)) / float64(p.done) * float64(p.left))
	p.say("%s: %.1f s; about %v left", what, took.Seconds(), left.Round(time.Second))
}
