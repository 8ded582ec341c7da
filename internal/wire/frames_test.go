package wire

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	restwatch "k8s.io/client-go/rest/watch"
)

// watchOf returns a decoder of a watch stream, as client-go's REST client makes it, with
// our serializer.
func watchOf(t *testing.T, body io.ReadCloser) *restwatch.Decoder {
	t.Helper()
	info := jsonInfo(t, variants()["own"])
	return restwatch.NewDecoder(streaming.NewDecoder(info.StreamSerializer.NewFrameReader(body), info.StreamSerializer.Serializer), info.Serializer)
}

const ordinaryEvent = `{"type":"ADDED","object":{"apiVersion":"g/v1","kind":"A","metadata":{"name":"x"}}}`

// An event is delivered when it is complete. A decoder that waits for the newline behind
// it, which some servers don't send, would delay the event until the next one.
func TestStream_DeliversAnEventWithoutANewline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a decoder that waits is a deadlock
		server, body := io.Pipe()
		d := watchOf(t, server)
		defer d.Close()
		go func() {
			for _, piece := range []string{ordinaryEvent[:20], ordinaryEvent[20:], ordinaryEvent + ordinaryEvent[:3], ordinaryEvent[3:]} {
				_, _ = io.WriteString(body, piece)
			}
			// The stream does not end.
		}()
		for i := range 3 {
			if kind, object, err := d.Decode(); err != nil || kind != "ADDED" || object.(*unstructured.Unstructured).GetName() != "x" {
				t.Fatalf("event %d: %v %v %v", i, kind, object, err)
			}
		}
	})
}

// Invalid data is reported at once, not when the connection ends.
func TestStream_ReportsInvalidDataAtOnce(t *testing.T) {
	for _, invalid := range []string{"<html>", "{<", "12 ", `{"type":"ADDED"]]`, "{\"a\":\"\x01", "{\"type\":\n\n;"} {
		synctest.Test(t, func(t *testing.T) { // a decoder that waits is a deadlock
			server, body := io.Pipe()
			d := watchOf(t, server)
			defer d.Close()
			go func() { _, _ = io.WriteString(body, invalid) }()
			if _, _, err := d.Decode(); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%q: error %v, want one about the data", invalid, err)
			}
		})
	}
}

// repeated is a body that begins with begin and repeats again without end.
type repeated struct {
	begin, again string
	read         int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.begin)
	r.begin = r.begin[n:]
	for n < len(p) {
		n += copy(p[n:], r.again)
	}
	r.read += n
	return n, nil
}

func (r *repeated) Close() error { return nil }

func TestStream_MemoryForAnEndlessEventIsBounded(t *testing.T) {
	whole(t)
	for _, body := range []*repeated{
		{begin: `{"type":"ADDED","object":{"a":"`, again: "a"},
		{begin: `"`, again: "a"},
		{begin: "{\n\"type\":\"ADDED\",\"object\":{\"a\":\"", again: "a"},
		{begin: `{"type":"ADDED","object":{"a":[1`, again: "\n"},
		{begin: ordinaryEvent + "\n" + `"x`, again: "a"},
	} {
		d := watchOf(t, body)
		begin := body.begin
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		for err == nil {
			_, _, err = d.Decode()
		}
		runtime.ReadMemStats(&after)
		if !errors.Is(err, streaming.ErrObjectTooLarge) {
			t.Errorf("%q: error %v, want %v", begin, err, streaming.ErrObjectTooLarge)
		}
		if body.read > 3*maxFrame {
			t.Errorf("%q: %d bytes were read", begin, body.read)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8*maxFrame {
			t.Errorf("%q: %d MiB were allocated", begin, allocated>>20)
		}
	}
}

func TestStream_LimitOfAnEventIsThatOfClientGo(t *testing.T) {
	whole(t)
	const around = `{"type":"ADDED","object":{"apiVersion":"g/v1","kind":"A","spec":""}}`
	for extra, want := range map[int]error{-1: nil, 0: nil, 1: streaming.ErrObjectTooLarge} {
		event := strings.Replace(around, `""`, `"`+strings.Repeat("x", maxFrame-len(around)+extra)+`"`, 1)
		if _, _, err := watchOf(t, io.NopCloser(strings.NewReader(event+"\n"))).Decode(); !errors.Is(err, want) {
			t.Errorf("%d bytes more than the limit: error %v, want %v", extra, err, want)
		}
	}
}

// SupportedMediaTypes makes serializers for one stream. If a later client-go uses them for
// two, the second stream must be decoded too.
func TestStream_TwoStreamsOnOneSerializer(t *testing.T) {
	info := jsonInfo(t, variants()["own"])
	first := info.StreamSerializer.NewFrameReader(io.NopCloser(strings.NewReader(ordinaryEvent)))
	second := info.StreamSerializer.NewFrameReader(io.NopCloser(strings.NewReader(strings.Replace(ordinaryEvent, `"x"`, `"y"`, 1))))
	frames := map[io.Reader][]byte{first: make([]byte, 1<<10), second: make([]byte, 1<<10)}
	for stream, buf := range frames { // both are read before either is decoded
		n, err := stream.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		frames[stream] = buf[:n]
	}
	for stream, want := range map[io.Reader]string{first: "x", second: "y"} {
		var event metav1.WatchEvent
		if _, _, err := info.StreamSerializer.Decode(frames[stream], nil, &event); err != nil {
			t.Fatal(err)
		}
		object, _, err := info.Serializer.Decode(event.Object.Raw, nil, nil)
		if err != nil || object.(*unstructured.Unstructured).GetName() != want {
			t.Errorf("%v %v, want the object %s", object, err, want)
		}
	}
}

// A thousand watches without events must not keep a thousand large buffers.
func TestWindow_IsSmallAgainAfterABurst(t *testing.T) {
	var w window
	for range 50 {
		_ = w.fill(bytes.NewReader(make([]byte, busyWindow)))
		w.consume(len(w.bytes()))
	}
	if len(w.buf) != busyWindow {
		t.Errorf("%d bytes in a burst, want %d", len(w.buf), busyWindow)
	}
	for range 6 {
		_ = w.fill(strings.NewReader(ordinaryEvent))
		w.consume(len(w.bytes()))
	}
	if len(w.buf) != minWindow {
		t.Errorf("%d bytes after the burst, want %d", len(w.buf), minWindow)
	}
}

func TestWindow_KeepsBytesThatAreNotConsumed(t *testing.T) {
	var w window
	var got []byte
	want := bytes.Repeat([]byte("0123456789"), 10_000)
	from := bytes.NewReader(want)
	for i := 0; len(got) < len(want); i++ {
		if from.Len() > 0 {
			_ = w.fill(from)
		}
		n := len(w.bytes()) * (i % 3) / 2
		got = append(got, w.bytes()[:n]...)
		w.consume(n)
	}
	if !bytes.Equal(got, want) {
		t.Error("the bytes differ from those that were read")
	}
}

func TestExtent_ScansEachByteOnce(t *testing.T) {
	data := encode(t, block(1))
	for _, size := range []int{1, 100, len(data)} {
		var e extent
		for end := size; end < len(data); end += size {
			if found := e.find(data[:end]); found != incomplete || e.scanned != end {
				t.Fatalf("pieces of %d: %v after %d bytes, %d of them scanned", size, found, end, e.scanned)
			}
		}
		if found := e.find(data); found != complete {
			t.Errorf("pieces of %d: %v at the end", size, found)
		}
	}
}

// The limit applies to one event, not to the stream.
func TestStream_UnusualEventsAreLimitedSingly(t *testing.T) {
	whole(t)
	pretty := strings.Replace(ordinaryEvent, ",", ",\n", 1)
	event := strings.Replace(pretty, `"x"`, `"`+strings.Repeat("x", maxFrame/4)+`"`, 1)
	d := watchOf(t, io.NopCloser(strings.NewReader(strings.Repeat(event, 6))))
	for i := range 6 {
		if _, _, err := d.Decode(); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
}
