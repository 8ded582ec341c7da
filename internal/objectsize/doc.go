// Package objectsize estimates how much memory cached objects take. Its nouns:
//
//   - [Of]: the memory of one object, as if it shared nothing with others. It visits only a part of each map, slice and
//     array, so that its time is bounded: about a microsecond.
//   - [Sample]: some objects that are visited as a whole, with the addresses of their parts. It says how much of the
//     memory objects have in common, and corrects the mean error of Of.
//
// The estimate of a cache is the sum of Of, times the ratio of a Sample. The package knows neither caches nor decoders: it
// works for the objects of any client, and after any transform.
package objectsize
