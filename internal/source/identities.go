package source

import (
	"iter"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// identities are the identities of objects by their keys. Those of an API server, whose UIDs are UUIDs and whose versions are
// numbers, are stored in compact form: a cache may have hundreds of thousands.
type identities struct {
	compact map[string]compactIdentity
	others  map[string]identity
	bytes   int64 // the sum of the sizes of the objects
}

// compactIdentity is an identity without a hash.
type compactIdentity struct {
	uid     uuid.UUID
	version uint64
	bytes   uint32
}

func newIdentities(n int) identities { return identities{compact: make(map[string]compactIdentity, n)} }

func (i *identities) len() int { return len(i.compact) + len(i.others) }

func (i *identities) get(key string) (id identity, there bool) {
	if compact, is := i.compact[key]; is {
		return compact.identity(), true
	}
	id, there = i.others[key]
	return id, there
}

// isSame reports whether there is an object under key, and whether id is a state of it. It does not allocate memory.
func (i *identities) isSame(key string, id identity) (same, there bool) {
	if compact, is := i.compact[key]; is {
		uid, ok := compactUID(id.uid)
		return ok && uid == compact.uid, true
	}
	known, there := i.others[key]
	return there && known.same(id), there
}

func (i *identities) put(key string, id identity) {
	i.bytes += int64(id.bytes) - i.size(key)
	if compact, ok := id.compact(); ok {
		if i.compact == nil {
			i.compact = map[string]compactIdentity{}
		}
		i.compact[key] = compact
		delete(i.others, key)
		return
	}
	if i.others == nil {
		i.others = map[string]identity{}
	}
	i.others[key] = id
	delete(i.compact, key)
}

func (i *identities) remove(key string) {
	i.bytes -= i.size(key)
	delete(i.compact, key)
	delete(i.others, key)
}

// size returns the size of the object under key; zero if there is none.
func (i *identities) size(key string) int64 {
	if compact, is := i.compact[key]; is {
		return int64(compact.bytes)
	}
	return int64(i.others[key].bytes)
}

// keys returns all keys, in no order.
func (i *identities) keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range i.compact {
			if !yield(key) {
				return
			}
		}
		for key := range i.others {
			if !yield(key) {
				return
			}
		}
	}
}

// compact returns id in compact form. It reports false if that would lose a part of it.
func (i identity) compact() (compact compactIdentity, ok bool) {
	const digits = 19 // the numbers with fewer fit
	if i.hash != 0 || i.version == "" || i.version[0] == '0' || len(i.version) >= digits {
		return compact, false
	}
	for n := range len(i.version) {
		c := i.version[n]
		if c < '0' || c > '9' {
			return compact, false
		}
		compact.version = 10*compact.version + uint64(c-'0')
	}
	compact.bytes = i.bytes
	compact.uid, ok = compactUID(i.uid)
	return compact, ok
}

func (c compactIdentity) identity() identity {
	return identity{uid: types.UID(c.uid.String()), version: strconv.FormatUint(c.version, 10), bytes: c.bytes}
}

// compactUID returns uid as a UUID. It reports false if the UUID has another text.
func compactUID(uid types.UID) (id uuid.UUID, ok bool) {
	const length = 36 // that of the usual form; Parse accepts others
	if len(uid) != length || strings.ContainsAny(string(uid), "ABCDEF") {
		return id, false
	}
	id, err := uuid.Parse(string(uid))
	return id, err == nil
}
