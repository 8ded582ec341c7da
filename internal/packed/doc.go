// Package packed encodes objects as tapes: compact, read-only texts that are made from JSON without an
// intermediate object. Its nouns:
//
//   - [Tape]: one object. Its name, namespace, UID, resourceVersion and labels are found without reading the rest.
//   - [Dictionary]: strings, lists of keys and whole values that many tapes of one type have in common. It is
//     bounded, and it is rebuilt when most of its entries are no longer used.
//   - [Packer]: makes tapes, from JSON or from unstructured content.
//
// A tape has the values that client-go's decoder returns for the same JSON. What is not ordinary is left to that
// decoder. The package knows nothing of informers, caches or resources.
package packed
