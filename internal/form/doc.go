// Package form has the forms of an informer's objects. Its nouns:
//
//   - [Form]: the Go type of objects, and how they are requested, decoded and listed: [Unstructured], [Metadata] and
//     [Typed].
//   - [Clients]: the clients of a factory, from which a form takes its client.
//
// The package knows nothing of factories, leases and informers.
package form
