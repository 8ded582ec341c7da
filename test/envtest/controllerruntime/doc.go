// Package controllerruntime runs controller-runtime's own tests of its package cache on gvrkit's cache, on kube-apiserver. It takes the tests
// from the module cache, and replaces only the constructor. The file exceptions_test.go has the tests that are left out, with their reasons.
package controllerruntime
