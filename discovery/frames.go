package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/watch"
)

const (
	maxValue   = 16 << 20 // bytes of an object: etcd has none of more than a few megabytes
	largeFrame = 64 << 10 // bytes from which on a frame's buffer is not kept for the next
)

var errValueTooLong = fmt.Errorf("the server sent %d bytes without an object's end", maxValue)

// bounded is the body of an answer of any length, in which no value is longer than
// maxValue. Whoever reads values says when one has ended.
type bounded struct {
	body io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errValueTooLong
	}
	n, err := b.body.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *bounded) ended() { b.left = maxValue }

// frame is one event of a watch.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// frames is the events of a watch.
type frames struct {
	body   *bounded
	source io.Reader // body, after what earlier decoders have read too much of it
	dec    *json.Decoder
}

func newFrames(body io.Reader) *frames {
	b := &bounded{body: body, left: maxValue}
	return &frames{body: b, source: b, dec: json.NewDecoder(b)}
}

// next returns the next event. The error is io.EOF itself if the body ended in order,
// which is between two events.
func (f *frames) next() (frame, error) {
	var next frame
	before := f.dec.InputOffset()
	if err := f.dec.Decode(&next); err != nil {
		return frame{}, err
	}
	f.body.ended()
	if f.dec.InputOffset()-before > largeFrame {
		// A decoder keeps the largest buffer that it has ever needed, and a quiet
		// watch would hold it for hours.
		f.source = io.MultiReader(f.dec.Buffered(), f.source)
		f.dec = json.NewDecoder(f.source)
	}
	return next, nil
}

// page is a page of a list.
type page[T slim] struct {
	kind    string
	items   []T
	version string // of the collection
	next    string // the token of the page that follows, if one does
}

// readPage reads a page of a list, holding no more than one object of it in full at a
// time. What is not a complete list is an error, and never an empty list.
func readPage[T slim](body io.Reader) (page[T], error) {
	b := &bounded{body: body, left: maxValue}
	p, err := decodePage[T](json.NewDecoder(b), b)
	if err == io.EOF { //nolint:errorlint // a decoder's own: the end between two tokens
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return page[T]{}, fmt.Errorf("the answer is no list: %w", err)
	}
	return p, nil
}

func decodePage[T slim](dec *json.Decoder, body *bounded) (p page[T], err error) {
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return p, unexpected(token, err)
	}
	var listed bool
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return p, err
		}
		switch key {
		case "metadata":
			var meta struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			}
			err = dec.Decode(&meta)
			p.version, p.next = meta.ResourceVersion, meta.Continue
		case "kind":
			err = dec.Decode(&p.kind)
		case "items":
			listed = true
			p.items, err = decodeItems[T](dec, body)
		default:
			err = dec.Decode(&json.RawMessage{})
		}
		if err != nil {
			return p, err
		}
		body.ended()
	}
	if token, err := dec.Token(); err != nil || token != json.Delim('}') {
		return p, unexpected(token, err)
	}
	if token, err := dec.Token(); err != io.EOF {
		return p, unexpected(token, err)
	}
	if !listed || p.version == "" {
		return p, errors.New("it lacks items or a resource version")
	}
	return p, nil
}

// decodeItems decodes the items of a list. A server written in Go may send null for
// none.
func decodeItems[T slim](dec *json.Decoder, body *bounded) ([]T, error) {
	token, err := dec.Token()
	if err != nil || token != json.Delim('[') {
		if err == nil && token == nil {
			return nil, nil
		}
		return nil, unexpected(token, err)
	}
	var items []T
	for dec.More() {
		var item T
		if err := dec.Decode(&item); err != nil {
			return nil, err
		}
		if err := identified(item); err != nil {
			return nil, err
		}
		body.ended()
		items = append(items, item)
	}
	_, err = dec.Token() // the bracket, or why there is none
	return items, err
}

// decodeObject decodes the object of an event.
func decodeObject[T slim](data []byte) (item T, err error) {
	if err := json.Unmarshal(data, &item); err != nil {
		return item, err
	}
	return item, identified(item)
}

// identified returns an error if an object lacks what every object has.
func identified[T slim](item T) error {
	var none T
	if item == none {
		return errors.New("null instead of an object")
	}
	if meta := item.meta(); meta.Name == "" || meta.UID == "" {
		return fmt.Errorf("an object without name or UID (name %q, UID %q)", meta.Name, meta.UID)
	}
	return nil
}

// unexpected returns err, or if it is nil, the error of a token that is out of place.
func unexpected(token json.Token, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("unexpected %v", token)
}
