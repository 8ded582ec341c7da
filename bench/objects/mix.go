package objects

const mixDomain = 3

// shape makes one sort of object from a draft.
type shape struct {
	name   string
	weight int // of a hundred
	fill   func(*draft)
}

// shapes are the sorts of objects in the mix and how common they are. Each is made
// in the manner of a custom resource that many clusters have.
var shapes = []shape{
	{"endpoint", 20, endpoint},
	{"rollout", 14, rollout},
	{"secret", 13, secret},
	{"certificate", 10, certificate},
	{"route", 10, route},
	{"appconfig", 8, appConfig},
	{"application", 7, application},
	{"rules", 6, rules},
	{"machine", 5, machine},
	{"snapshot", 4, snapshot},
	{"composition", 3, composition},
}

// mixed returns the object with number i of the mix.
func mixed(i int) object {
	d := newDraft(i)
	at := d.IntN(100)
	for _, s := range shapes {
		if at -= s.weight; at < 0 {
			s.fill(d)
			return d.finish(i)
		}
	}
	panic("objects: bug: the weights of the shapes are no hundred")
}
