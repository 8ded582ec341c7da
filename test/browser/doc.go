// Package browser has tests of the factory's page in a real browser, Chromium without a
// window, on a server on loopback. Without a browser they say so and are skipped.
//
//	go test ./test/browser -run Screenshot -screenshot "$PWD/docs/page.png"
//
// takes the picture that the README shows.
package browser
