package statuspage

import (
	"net/http"
	"strconv"
)

// response is what is sent, any number of times: nobody writes to its body any more.
type response struct {
	code   int
	format format
	body   []byte
}

// refuse returns a response of one line.
func refuse(code int, line string) response { return response{code, asText, []byte(line + "\n")} }

// send writes it, without the body for HEAD. How long that takes is up to who reads.
func (r response) send(w http.ResponseWriter, to *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(r.body)))
	header.Set("Content-Security-Policy", policy)
	header.Set("Content-Type", r.format.contentType())
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Vary", "Accept")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(r.code)
	if to.Method == http.MethodGet {
		_, _ = w.Write(r.body) // whoever has asked has gone, then
	}
}
