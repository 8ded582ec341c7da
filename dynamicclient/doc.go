// Package dynamicclient makes dynamic clients that decode JSON in one pass: plain
// dynamic.Interface values with client-go's requests, objects and errors, for a fraction of the
// CPU.
//
//   - [New] and [NewForHTTPClient] make a client.
//   - An [Option] says how it decodes: which fields it leaves out, and whether equal parts of
//     objects are one in memory.
//   - [Tables] are what clients may share.
//
// The package knows nothing of informers.
package dynamicclient
