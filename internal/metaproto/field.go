package metaproto

import "google.golang.org/protobuf/encoding/protowire"

// field is a field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // of a string or a message
	varint uint64
}

// consume returns the first field of data, which is not empty, and its length. The length is negative if the field is not valid.
// Where this and client-go's decoder differ in what is valid, client-go's allows more.
func consume(data []byte) (f field, length int) {
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 {
		return f, n
	}
	f.number, f.kind = number, kind
	var value int
	switch kind {
	case protowire.VarintType:
		f.varint, value = protowire.ConsumeVarint(data[n:])
	case protowire.BytesType:
		f.bytes, value = protowire.ConsumeBytes(data[n:])
	default:
		value = protowire.ConsumeFieldValue(number, kind, data[n:])
	}
	if value < 0 {
		return f, value
	}
	return f, n + value
}

// run is a field that occurs several times in a message, one after the other.
type run struct {
	from, to int // in the message
	count    int
}

// add adds the field in data[from:to]. It returns false if there is another field between this one and the last one.
func (r *run) add(from, to int) bool {
	if r.count == 0 {
		r.from = from
	} else if r.to != from {
		return false
	}
	r.to = to
	r.count++
	return true
}

// of returns the bytes of the run in its message.
func (r *run) of(message []byte) []byte { return message[r.from:r.to] }
