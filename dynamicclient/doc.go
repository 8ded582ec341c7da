// Package dynamicclient creates dynamic clients that decode JSON in one pass. They are
// dynamic.Interface values with client-go's requests, objects and errors, and use less CPU time.
//
//   - [New] and [NewForHTTPClient] create a client.
//   - An [Option] configures decoding: which fields are left out, and whether equal parts of
//     objects share memory.
//   - [Tables] are tables of decoded strings and parts that several clients can share.
//
// The package knows nothing of informers.
package dynamicclient
