// Package sample has the program that articles on client-go show for watching a
// resource that is not known at compile time, twice: in upstream with client-go's
// factory, in ours with gvrkit's. The two files differ in one import line, which a
// test checks before it runs both.
package sample
