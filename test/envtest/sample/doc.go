// Package sample has a program from articles on client-go, which watches a resource that is not
// known at compile time. Package upstream uses client-go's factory, and package ours gvrkit's. The
// two files differ in one import line. A test checks this and runs both.
package sample
