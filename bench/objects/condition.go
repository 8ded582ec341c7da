package objects

import "time"

// condition returns one entry of a status's conditions.
func (d *draft) condition(kind string, ok bool, reason, message string) object {
	status := "False"
	if ok {
		status = "True"
	}
	c := object{
		"type": kind, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": timestamp(d.transition()),
	}
	if d.chance(.7) {
		c["observedGeneration"] = d.version
	}
	return c
}

// transition is a time between the draft's making and its last change.
func (d *draft) transition() time.Time {
	span := d.settled.Sub(d.created)
	if span <= 0 || d.chance(.3) {
		return d.settled
	}
	return d.created.Add(time.Duration(d.Float64() * float64(span))).Truncate(time.Second)
}
