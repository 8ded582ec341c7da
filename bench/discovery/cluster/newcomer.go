package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// serveChange makes a change of a newcomer, and answers when it was made.
func serveChange(change func(Definition) (time.Time, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(r.PathValue("number"))
		if err != nil || i < 0 {
			http.Error(w, "no number of a newcomer", http.StatusBadRequest)
			return
		}
		at, err := change(Newcomer(i))
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		reply(w, at)
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has gone, if that fails
}

// create adds a CRD, establishes it and adds its APIServices; the documents follow
// after the lag. It returns when the CRD was established.
func (c *Cluster) create(d Definition) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexLocked(d) >= 0 {
		return time.Time{}, fmt.Errorf("%s is there already", d.Name())
	}
	c.present = append(c.present, d)
	following, err := newDocuments(c.types())
	if err != nil {
		return time.Time{}, err
	}
	if _, err := c.putCRD(d, false); err != nil {
		return time.Time{}, err
	}
	at, err := c.putCRD(d, true)
	if err != nil {
		return time.Time{}, err
	}
	c.publishLocked(following, c.size.Lag)
	for _, t := range d.Types {
		if err := c.putAPIService(t.GVR.GroupVersion(), true); err != nil {
			return time.Time{}, err
		}
	}
	return at, nil
}

// remove takes a CRD away, and what it defines out of the documents at once. It returns
// when.
func (c *Cluster) remove(d Definition) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.indexLocked(d)
	if i < 0 {
		return time.Time{}, fmt.Errorf("there is no %s", d.Name())
	}
	c.present = slices.Delete(c.present, i, i+1)
	following, err := newDocuments(c.types())
	if err != nil {
		return time.Time{}, err
	}
	c.publishLocked(following, 0)
	at, err := c.crds.remove(d.Name(), func(version string) map[string]any { return d.object(c.size.SchemaBytes, true, version) })
	if err != nil {
		return time.Time{}, err
	}
	for _, t := range d.Types {
		gv := t.GVR.GroupVersion()
		if _, err := c.apis.remove(apiServiceName(gv), func(version string) map[string]any { return apiService(gv, true, version) }); err != nil {
			return time.Time{}, err
		}
	}
	return at, nil
}

func (c *Cluster) indexLocked(d Definition) int {
	return slices.IndexFunc(c.present, func(other Definition) bool { return other.Number == d.Number })
}

// publishLocked makes d what the documents say after lag, unless there is another change
// before that.
func (c *Cluster) publishLocked(d *documents, lag time.Duration) {
	c.change++
	if lag == 0 {
		c.current.Store(d)
		return
	}
	number := c.change
	time.AfterFunc(lag, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.change == number {
			c.current.Store(d)
		}
	})
}
