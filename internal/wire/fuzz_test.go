package wire

import "testing"

// sightings is how often the tests decode each input. The first time, tables store the
// marks of its strings. The second time, they store the strings and the marks of
// subtrees; the third time, the subtrees. The fourth time, the subtrees are shared. The
// fuzz tests, which compare the decoders with client-go's, keep the tables between
// inputs.
const sightings = 4

// maxSeed is the length of the longest seed. For longer ones, the fuzzing engine reports
// a hang.
const maxSeed = 8 << 10

func addSeeds(f *testing.F, corpus []string) {
	f.Helper()
	for _, data := range corpus {
		if len(data) <= maxSeed {
			f.Add([]byte(data))
		}
	}
}

func FuzzObject(f *testing.F) {
	addSeeds(f, objectCorpus())
	f.Add(encode(f, block(1)))
	serializers, drops := variants(), dropping()
	f.Fuzz(func(t *testing.T, data []byte) {
		for range sightings {
			for _, ours := range serializers {
				sameDecoding(t, ours, data)
			}
			sameDropping(t, drops, data)
		}
	})
}

func FuzzList(f *testing.F) {
	addSeeds(f, listCorpus())
	f.Add(listOf(f, block(1), block(2), block(1)))
	serializers, drops := variants(), dropping()
	f.Fuzz(func(t *testing.T, data []byte) {
		for range sightings {
			for _, ours := range serializers {
				sameDecoding(t, ours, data)
			}
			sameDropping(t, drops, data)
		}
	})
}

func FuzzStream(f *testing.F) {
	for i, data := range streamCorpus(f) {
		if len(data) <= maxSeed {
			f.Add([]byte(data), []uint16{0, 6, 63, 4095}[i%4])
		}
	}
	f.Add(append(frame(f, "ADDED", block(1)), frame(f, "MODIFIED", block(2))...), uint16(1000))
	serializers := variants()
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		for range sightings {
			for _, ours := range serializers {
				sameStream(t, ours, data, int(size)+1)
			}
		}
	})
}
