// Package browser tests the factory's status page in headless Chromium, on a server on the loopback
// interface. If there is no browser, the tests are skipped with a message.
//
//	go test ./test/browser -run Screenshot -screenshot "$PWD/docs/page.png"
//
// creates the picture in the README.
package browser
