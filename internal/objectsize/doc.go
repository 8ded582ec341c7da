// Package objectsize estimates how much memory cached objects take. Its nouns:
//
//   - [Of]: the memory of one object, as if it shared nothing with others. It visits all of a metav1.ObjectMeta, whose size API servers
//     limit, and only a part of each other map, slice and array: one to three microseconds for most objects.
//   - [Sample]: some objects that are visited as a whole, with the addresses of their parts. It says how much of the
//     memory objects have in common, and corrects the mean error of Of.
//
// The estimate of a cache is the sum of Of, times the ratio of a Sample. The package knows neither caches nor decoders: it
// works for the objects of any client, and after any transform.
package objectsize
