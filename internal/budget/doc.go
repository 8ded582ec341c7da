// Package budget limits the memory of caches. Its nouns:
//
//   - [Budget]: the memory that all caches together may have, and the refused lists that wait for it, in order.
//   - [Account]: the part of one cache: its memory, the reservations of its lists in progress, and what its refused lists need.
//   - [Reservation]: the part of one list in progress. It is the present estimate of what the list adds to the cache.
//
// A list whose estimate does not fit is refused with an [*OverError]. It may begin again when there is room for that estimate, which is then
// reserved for it: so a repeated list either fits or has a larger estimate. A cache that grows later is not refused anything, and
// counts. The package does not know lists and objects: it counts bytes. Nothing in it blocks, and it has no goroutine. A nil Budget or
// Account limits nothing.
package budget
