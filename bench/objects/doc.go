// Package objects makes the objects that the benchmark is run on: deterministic,
// encoded as an API server would encode them, and of kinds that differ in what
// makes caching them dear.
//
// Kind "ipamblock" is one object over and over, large and full of small maps, whose
// strings hardly repeat. Kind "mix" is what is found in a cluster that runs some
// hundreds of applications: objects of eleven shapes and many lengths, in which
// labels, images, managers and phrases come back, and hardly any two objects are
// alike. [Corpus.CompressedBytes] tells how much they have to say.
//
// The package knows nothing of servers and caches.
package objects
