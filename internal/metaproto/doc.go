// Package metaproto decodes metadata in Protocol Buffers, as API servers send it: objects and lists of
// *metav1.PartialObjectMetadata. Its nouns:
//
//   - [Decoder]: decodes ordinary responses in one pass, with the values of client-go's decoder. Anything else is left to
//     client-go's decoder on the same bytes.
//   - [Tables]: strings and parts of objects that have been decoded before. Objects of informers have them in common.
//   - [Drop]: the fields that are left out.
//   - [Negotiated]: the decoder as a serializer of a metadata client.
//
// The package does not know requests and informers.
package metaproto
