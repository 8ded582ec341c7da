// Package measure runs one system against one server, in a process that does nothing
// else, and says what it took: to fill the cache, to keep it, and to follow changes.
//
// It also compares the cache, object by object, with what the server has as client-go
// decodes it. A system whose cache is not right has no figures.
package measure
