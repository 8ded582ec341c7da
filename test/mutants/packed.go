package main

// ofPacked has mutants of packed caches.
var ofPacked = []table{
	{"internal/wire", "internal/typed", []mutant{
		{"a bookmark is packed, without the fields that are left out", "Read.event", never("kind == watch.Bookmark")},
		{"items are packed with half a kind of their list", "Read.item", always(`missing.Kind != "" && missing.Kind != list.Kind && missing.APIVersion != ""`)},
		{"items are packed without a version before the kind of their list is known", "Read.item", replace(`version != "" && kind != ""`, `version != "" || kind != ""`)},
		{"lists of custom resources are not packed directly", "Read.item", replace(`version != "" && kind != ""`, `version == "" && kind == ""`)},
		{"what follows a packed object is not read", "Read.object", drop("b.scanner = b.scan.scanner")},
		{"packed lists are left to client-go's decoder", "serializer.leaves", replace("!reads || !is || list == nil", "!reads || !is || list != nil")},
	}},
	{"internal/packed", "internal/typed", []mutant{
		{"packed items of a list have no kind", "encoder.complete", always(`e.missing.Kind == ""`)},
		{"packed items with a kind get another one", "encoder.complete", drop("case e.named: return true")},
		{"packed items keep an empty kind", "encoder.complete", drop("case e.empty: return false")},
		{"the next object has the missing kind of this one", "encoder.reset", drop("e.missing, e.named, e.empty = metav1.TypeMeta{}, false, false")},
	}},
	{"internal/packed", "internal/packed", []mutant{
		{"an object with a label that is replaced by a text has no labels", "decoder.eachText", replace("d.eachLast(each)", "false")},
		{"an object with a label that is null has no labels", "decoder.eachLast", replace("!is && value != nil", "!is")},
		{"an object has labels that are no texts", "decoder.eachLast", never("!is && value != nil")},
		{"texts that alternate are not counted", "Dictionary.again", never("count > 0 && rand.Uint32()&1 == 0")},
		{"a dictionary has more entries than there is room for", "Dictionary.enter", never("len(e.boxed) >= most || d.bytes+len(text) > maxBytes")},
		{"a tree with more elements than its tape is read beyond it", "decoder.arrayLike", replace("min(len(tree), theirs.n)", "len(tree)")},
		{"times and numbers enter the dictionary", "appendSmall", never("n == 20 && content[n-1] == 'Z'")},
		{"equal bytes in the metadata are equal values", "decoder.objectLike", never("of == headParts && isHead(d.data[d.pos])")},
		{"unequal parts are taken for equal ones", "decoder.valueLike", replace("d.data[d.pos:end] == other.data[other.pos:other.after()]", "end-d.pos == other.after()-other.pos")},
		{"members are compared with others", "decoder.objectLike", replace("theirKeys.next() != name", "theirKeys.next() == \"\"")},
		{"words in two bytes have no mark when they are in use", "decoder.use", replace("mark(u.words, d.nearWord())", "d.nearWord()")},
		{"a quote in a packed string ends it", "appendQuoted", replace(`c == '"'`, "false")},
		{"a reader does not pass over a wide integer", "decoder.skip", replace("tag == tagWideInt", "false")},
	}},
	{"internal/source", "internal/source", []mutant{
		{"an object with another UID is the same", "identities.isSame", replace("uid == compact.uid", "uid[0] == compact.uid[0]")},
		{"the version of an identity loses zeros", "identity.compact", replace("i.version[0] == '0'", "false")},
		{"the hash of an object in poll mode is lost", "identity.compact", replace("i.hash != 0", "false")},
		{"an object has two identities", "identities.put", drop("delete(i.others, key)")},
	}},
	{"internal/packed", "packed", []mutant{
		{"a part of the path of a packed field is enough", "decoder.enterAll", drop("return false")},
	}},
	{"internal/typed", "internal/typed", []mutant{
		{"metadata with a transform has shared parts", "partial.next", never("c.transformed.Load()")},
		{"a bad list in protobuf has the error of another format", "partial.List", drop("return nil, object.Err")},
	}},
	{"internal/packed", "packed", []mutant{
		{"quotes in fields that keep JSON have another text", "appendQuoted", replace(
			`append(append(b, text[from:i]...), '\\', c)`, `append(append(b, text[from:i]...), '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])`)},
	}},
	{"packed", "packed", []mutant{
		{"the labels of a packed object have other values", "labelsOf.Lookup", replace("l.read().Label(name)", "l.GetName(), true")},
		{"an object that is in use is unpacked again", "Object.unpacked", never("tree != nil")},
		{"an object is packed with the old dictionary", "Packer.Renew", drop("o.tape.Store(&again)")},
		{"an object of an update is unpacked in full", "Object.UnstructuredLike", replace("tape.ContentLike(other.read(), other.Unstructured().Object)", "tape.Content()")},
		{"concurrent readers of an object unpack it several times", "Object.unpacked", always("o.tree.CompareAndSwap(last, &now)")},
	}},
	{"internal/packed", "packed", []mutant{
		{"what a program writes to an object becomes a part of packed objects", "Packer.Repack", replace("t.OwnContent()", "t.Content()")},
	}},
	{"packed", "dynamicinformer", []mutant{
		{"the mutation detector names objects with equal parts", "Object.unpack", replace("tape.OwnContent()", "tape.Content()")},
		{"the mutation detector gets no unpacked objects", "Object.unpack", drop("observe(tree)")},
	}},
	{"internal/packed", "lister", []mutant{
		{"a packed float is an integer in JSON", "appendFloatJSON", never(`!bytes.ContainsAny(b[start:], ".e")`)},
	}},
	{"lister", "lister", []mutant{
		{"an object that can't be copied ends the process", "copied", replace("recover()", "any(nil)")},
	}},
	{"internal/objectlister", "lister", []mutant{
		{"a lister unpacks objects before it selects them", "New", never("unpack != nil")},
		{"a lister of a packed cache ignores selectors", "Of.Each", always(`!l.packed || selector.Empty() || labels.MatchesNothing(selector)`)},
	}},
	{"lister", "lister", []mutant{
		{"Go types are made from trees of packed objects", "view.object", never("is && v.objects.IsPacked()")},
		{"metadata has no kind", "metadataOf.of", drop("to.TypeMeta = metadataType")},
		{"metadata of a Go type has no kind", "metadataOf.ofOther", drop("to.TypeMeta = metadataType")},
		{"an object without metadata ends the process", "metadataOf.ofOther", never("from == nil")},
		{"metadata of a cache of metadata is not read", "metadataOf.ofOther", drop("return object, true")},
		{"a typed view of a packed cache keeps all objects", "conversions.put", never("!replaced && most > 0 && len(c.of) >= most")},
		{"a query unpacks each object that it reads", "Reader.fields", never("r.objects.IsPacked()")},
		{"a path of a packed object has no rest", "path.find", replace("eval(p.rest, []any{at})", "[]any{at}")},
	}},
	{"internal/informer", "internal/informer", []mutant{
		{"the dictionary of a packed cache is renewed during the first list", "packing.renew", never("!p.synced()")},
		{"the dictionary of a packed cache grows for ever", "packing.Pack", never("p.packed.Add(1)%checkAfter == 0")},
		{"index functions are called again for the old object", "packing.index", replace("known.Of(&function)", "known.Of(nil)")},
		{"an error of an index function is forgotten", "packing.index", always("err == nil && known != nil")},
		{"any function of the namespace index gets packed objects", "isOfNamespaces", replace("reflect.ValueOf(cache.MetaNamespaceIndexFunc)", "reflect.ValueOf(function)")},
		{"the index of namespaces unpacks objects", "isOfNamespaces", replace("reflect.ValueOf(cache.MetaNamespaceIndexFunc)", "reflect.ValueOf(isOfNamespaces)")},
		{"Index does not read one state of the cache", "Informer.guard", replace("orValues(i.guardIndex(name, function))", "i.guardIndex(name, function)")},
		{"a list of a namespace in a packed cache appears in the status", "readIndexer.Packed", replace("&readIndexer{packed.Indexer, r.informer}", "packed.Indexer")},
		{"what a program stores is not packed", "packedIndexer.packed", drop("return i.packing.Pack(object)")},
	}},
	{"internal/informer", "dynamicinformer", []mutant{
		{"an empty packed cache takes memory", "packing.Size", never("p.packed.Load() == 0")},
		{"readers get packed objects", "packing.unpacked", drop("return object.Unstructured()")},
		{"index functions get packed objects", "Informer.guardIndex", replace("i.packing.index(function)", "function")},
		{"unpacked objects are not observed", "newPacking", never("internalpacked.DetectsMutations()")},
		{"the store of a packed cache is client-go's", "Informer.GetStore", always("i.packing == nil")},
	}},
	{"internal/handlers", "dynamicinformer", []mutant{
		{"handlers get packed objects", "handler.unpack", always("packed || unpack == nil")},
		{"handlers of packed objects get trees", "handler.unpack", replace("packed || unpack == nil", "unpack == nil && !packed")},
		{"a handler of packed objects gets deletions of other objects", "packedHandler.forget", replace("!h.others[name]", "true")},
	}},
	{"internal/source", "dynamicinformer", []mutant{
		{"objects that a transform has returned are not packed", "transform.packed", always("t.packing == nil")},
		{"the deletion of a packed object has no last state", "lookUp.deletion", never("packing != nil && last != nil")},
	}},
	{"internal/form", "dynamicinformer", []mutant{
		{"a packed cache's transform gets objects with shared parts", "choice.Resource", never("c.transformed.Load()")},
	}},
	{"dynamicinformer", "dynamicinformer", []mutant{
		{"a lease with a packed cache shares another one", "conflict", replace("have.packed || !want.packed", "true")},
		{"an option that metadata ignores conflicts", "Factory.leaseOptions", drop("o.packed = o.packed && o.form == form.Unstructured{}")},
		{"the variable does not reach informers without a factory", "standalone", replace("form.Packer(o.form, o.packed)", "nil")},
		{"AddPackedHandler accepts any cache", "Lease.AddPackedHandler", never("!l.entry.informer.IsPacked()")},
	}},
}
