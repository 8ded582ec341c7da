// Package metrics exports the status of a factory's informers to Prometheus.
//
// [NewCollector] returns a collector of [dynamicinformer.Factory.Status], summed by group, version
// and resource, and of the status of the factory's discovery. [InformerMetrics] collects client-go's
// own metrics of informers, if the factory has it as an option.
//
// A series of a resource exists while an informer of the resource exists. Label values are the names
// of resources that the program requests, and constants of this module. The names of handlers and
// leases are not labels. Two factories of one process need additional labels: see
// prometheus.WrapRegistererWith.
//
// The package has no storage of series and no alerts.
package metrics
