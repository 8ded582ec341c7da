// Package controllerruntime runs controller-runtime's own tests on gvrkit's cache, on kube-apiserver: those of its packages cache, manager,
// builder, controller and client. With -short, only those of controller run. The package takes the release from the module cache, and changes only
// the constructor of its cache. With the flag -stock, the tests run on controller-runtime's cache. The file exceptions_test.go has the tests
// that fail, with their reasons.
package controllerruntime
