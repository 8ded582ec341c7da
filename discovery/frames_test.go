package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// Frames of any size come whole and in order, however the body is cut.
func TestFrames_AreReadOneByOne(t *testing.T) {
	var body strings.Builder
	var want []string
	for i, size := range []int{largeFrame * 5, largeFrame + 1, 1, largeFrame + 1, 2, 3, largeFrame * 2, largeFrame * 2, 4, largeFrame - 100, 5, largeFrame + 1} {
		object := fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", size))
		want = append(want, object)
		fmt.Fprintf(&body, "%s"+`{"object":%s,"type":"ADDED"}`, []string{"\n", "", " \r\n\t"}[i%3], object)
	}
	body.WriteString("\n\n")
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"at once":       func(r io.Reader) io.Reader { return r },
		"in bytes":      iotest.OneByteReader,
		"in halves":     iotest.HalfReader,
		"with its end":  iotest.DataErrReader,
		"in one stroke": func(r io.Reader) io.Reader { return struct{ io.Reader }{r} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFrames(cut(strings.NewReader(body.String())))
			var got []string
			for {
				next, err := f.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(next.Object))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects differ (%d of %d)", len(got), len(want))
			}
		})
	}
}

// The bound is on one frame, not on all.
func TestFrames_AreBoundedOneByOne(t *testing.T) {
	const one = `{"type":"ADDED","object":{}}`
	f := newFrames(iotest.OneByteReader(strings.NewReader(strings.Repeat(one, 3))))
	f.body.left = len(one)
	for i := range 2 {
		if _, err := f.next(); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	f.body.left = len(one) - 1
	if _, err := f.next(); !errors.Is(err, errValueTooLong) {
		t.Errorf("err = %v, want %v", err, errValueTooLong)
	}
}

func TestPage_IsBoundedItemByItem(t *testing.T) {
	for name, body := range map[string]string{
		"a name":     `{"items":[{"metadata":{"name":"` + strings.Repeat("x", 100),
		"a value":    `{"items":[],"other":["` + strings.Repeat("x", 100),
		"a key":      `{"` + strings.Repeat("x", 100),
		"whitespace": `{"items":[` + strings.Repeat(" ", 100),
	} {
		t.Run(name, func(t *testing.T) {
			b := &bounded{body: strings.NewReader(body), left: 50}
			if _, err := decodePage[*crd](json.NewDecoder(b), &bounded{}); !errors.Is(err, errValueTooLong) {
				t.Errorf("err = %v, want %v", err, errValueTooLong)
			}
		})
	}
}
