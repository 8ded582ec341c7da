// Package mappers has what is compared: ways to learn which resource the objects of a
// kind are, each used as its documentation says.
package mappers
