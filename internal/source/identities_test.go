package source

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

const someUID = "0f3a9c1e-77b2-4d10-8a55-0123456789ab"

func TestIdentities_ReturnWhatWasPut(t *testing.T) {
	ids := map[string]identity{
		"usual":        {uid: someUID, version: "1234567890"},
		"largest":      {uid: someUID, version: "999999999999999999"},
		"too large":    {uid: someUID, version: "9999999999999999999"},
		"overflow":     {uid: someUID, version: "99999999999999999999"},
		"zeros":        {uid: someUID, version: "0012"},
		"zero":         {uid: someUID, version: "0"},
		"text":         {uid: someUID, version: "12a"},
		"sign":         {uid: someUID, version: "-12"},
		"versionless":  {uid: someUID},
		"no UID":       {version: "12"},
		"polled":       {uid: someUID, version: "12", hash: 7},
		"capitals":     {uid: "0F3A9C1E-77B2-4D10-8A55-0123456789AB", version: "12"},
		"no hyphens":   {uid: "0f3a9c1e077b204d1008a5500123456789ab", version: "12"},
		"no digit":     {uid: "0f3a9c1e-77b2-4d10-8a55-0123456789ag", version: "12"},
		"another form": {uid: "made by a test", version: "12"},
	}
	for _, earlier := range []identity{{}, {uid: someUID, version: "5"}, {uid: "x", version: "y"}} {
		var all identities
		for key, id := range ids {
			if earlier != (identity{}) {
				all.put(key, earlier)
			}
			all.put(key, id)
		}
		if got, want := slices.Sorted(all.keys()), slices.Sorted(maps.Keys(ids)); !slices.Equal(got, want) || all.len() != len(want) {
			t.Errorf("%d keys: %q", all.len(), got)
		}
		for key, want := range ids {
			if got, there := all.get(key); !there || got != want {
				t.Errorf("%s: %+v, %t, want %+v", key, got, there, want)
			}
			for _, id := range []identity{want, {uid: want.uid, version: "77"}, {uid: someUID}, {uid: types.UID(someUID[:35] + "c")}, {uid: "x"}, {}} {
				if same, there := all.isSame(key, id); same != want.same(id) || !there {
					t.Errorf("%s: same as %+v: %t, %t", key, id, same, there)
				}
			}
		}
		sum := int64(0)
		for key, id := range ids {
			id.bytes = uint32(len(key))
			sum += int64(len(key))
			all.put(key, id)
			all.put(key, id)
		}
		if all.bytes != sum {
			t.Errorf("%d bytes, want %d", all.bytes, sum)
		}
		for key := range ids {
			all.remove(key)
			if _, there := all.get(key); there {
				t.Errorf("%s is there", key)
			}
			if same, there := all.isSame(key, ids[key]); same || there {
				t.Errorf("%s: %t, %t after it was removed", key, same, there)
			}
		}
		if all.len() != 0 || all.bytes != 0 {
			t.Errorf("%d are left, and %d bytes", all.len(), all.bytes)
		}
	}
}

func TestIdentities_OfAServerAreCompact(t *testing.T) {
	var all identities
	all.put("a", identity{uid: someUID, version: "1234567890"})
	if len(all.compact) != 1 || len(all.others) != 0 {
		t.Errorf("%+v", all)
	}
	if n := testing.AllocsPerRun(100, func() { all.isSame("a", identity{uid: someUID}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
