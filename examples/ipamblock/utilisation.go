package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

//go:embed utilisation.html
var utilisationPage string

//go:embed utilisation.css
var utilisationStyle string

//go:embed utilisation.js
var utilisationScript string

var (
	utilisationTemplate = template.Must(template.New("").Parse(utilisationPage))
	// utilisationPolicy allows a browser to run only our script.
	utilisationPolicy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		digest(utilisationScript), digest(utilisationStyle))
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// maxCells is the number of blocks that a page shows.
const maxCells = 2000

// utilisation is a page that shows the utilisation of the blocks of a lister. It reads only the cache,
// and does not write.
type utilisation struct{ blocks cache.GenericLister }

// cell is a block on the page.
type cell struct {
	block
	Level   string // of utilisation, as a word
	Percent string
}

// utilisationView is the data of the template.
type utilisationView struct {
	At               string
	Cells            []cell
	Blocks, NotShown int
	Used, Size, Full int
	Percent          string
	Style, Script    any
}

// ServeHTTP implements http.Handler.
func (u *utilisation) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	objs, err := u.blocks.List(labels.Everything())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var page bytes.Buffer
	if err := utilisationTemplate.Execute(&page, newUtilisationView(blocksOf(objs), time.Now())); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", utilisationPolicy)
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(page.Bytes()) // it fails after the client has closed the connection
}

func newUtilisationView(blocks []block, at time.Time) *utilisationView {
	v := &utilisationView{
		At: at.UTC().Format("2006-01-02 15:04:05 UTC"), Blocks: len(blocks),
		Style: template.CSS(utilisationStyle), Script: template.JS(utilisationScript), //nolint:gosec // our own
	}
	for _, b := range blocks {
		v.Used, v.Size = v.Used+b.Used, v.Size+b.Size
		if b.Size > 0 && b.Used == b.Size {
			v.Full++
		}
	}
	v.Percent = percent(v.Used, v.Size)
	v.NotShown = max(0, len(blocks)-maxCells)
	for _, b := range blocks[:len(blocks)-v.NotShown] {
		v.Cells = append(v.Cells, cell{b, level(b.Used, b.Size), percent(b.Used, b.Size)})
	}
	return v
}

// level returns the level of utilisation of a block.
func level(used, size int) string {
	switch {
	case size == 0:
		return "unknown"
	case used == 0:
		return "empty"
	case used == size:
		return "full"
	case used*4 >= size*3:
		return "high"
	case used*2 >= size:
		return "half"
	}
	return "low"
}

// percent returns used as a percentage of size, rounded down.
func percent(used, size int) string {
	if size == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", used*100/size)
}
