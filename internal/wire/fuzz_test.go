package wire

import "testing"

// The fuzz targets hold the decoders against client-go's. Tables are kept from one
// input to the next, and each input is decoded three times: the first time leaves
// marks, the second fills the tables, the third is served from them.
const sightings = 3

func FuzzObject(f *testing.F) {
	for _, data := range objectCorpus() {
		f.Add([]byte(data))
	}
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
	for _, data := range listCorpus() {
		f.Add([]byte(data))
	}
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
		f.Add([]byte(data), uint16([]int{1, 7, 64, 4096, 0}[i%5])) //nolint:gosec // small
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
