// Package metrics tells Prometheus how a factory's informers do.
//
// [NewCollector] makes a collector of what [dynamicinformer.Factory.Status] says, summed up
// by group, version and resource, and of what the factory's discovery says. [InformerMetrics]
// has client-go's own metrics of informers, if it is given to the factory.
//
// Every series of a resource is there while an informer of it is, and goes with it. Label
// values are the names of resources, which the program asks for, and constants of this module.
// Names of handlers and leases are no labels. Two factories of one process need labels of
// their own: see prometheus.WrapRegistererWith.
//
// Nothing here knows how series are stored or alerts are made.
package metrics
