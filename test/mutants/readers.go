package main

// ofLister are the ways to break lister.
var ofLister = []mutant{
	{
		name: "NotFound has the wrong resource",
		file: "lister/lister.go",
		old:  "apierrors.NewNotFound(gvr.GroupResource(), name)",
		new:  `apierrors.NewNotFound(schema.GroupResource{Resource: gvr.Resource}, name)`,
	},
	{
		name: "NotFound has the key for a name",
		file: "lister/lister.go",
		old:  `return get(l.indexer, l.gvr, l.namespace+"/"+name, name)`,
		new:  `return get(l.indexer, l.gvr, l.namespace+"/"+name, l.namespace+"/"+name)`,
	},
	{
		name: "a namespace lists all",
		file: "lister/lister.go",
		old:  "cache.ListAllByNamespace(l.indexer, l.namespace,",
		new:  `cache.ListAllByNamespace(l.indexer, "",`,
	},
	{
		name: "the selector is ignored",
		file: "lister/lister.go",
		old:  "	return selector\n",
		new:  "	return labels.Everything()\n",
	},
	{
		name: "a failed Get is a typed nil",
		file: "lister/generic.go",
		old:  "	if err != nil {\n		return nil, err\n	}\n	return obj, nil\n",
		new:  "	return obj, err\n",
	},
}

// ofDiscovery are the ways to break discovery.
var ofDiscovery = []mutant{
	{
		name: "a group that is down is taken for absent",
		file: "discovery/catalogue.go",
		old:  "	if gvs == nil {\n		return nil",
		new:  "	if true {\n		return nil",
	},
	{
		name: "an unreachable server is taken for one that serves nothing",
		file: "discovery/resolver.go",
		old:  "if err != nil && !apierrors.IsNotFound(err) {",
		new:  "if err != nil && !apierrors.IsNotFound(err) && false {",
	},
	{
		name: "ambiguity is resolved by chance",
		file: "discovery/catalogue.go",
		old:  "		case 1:\n",
		new:  "		case 1, 2:\n",
	},
	{
		name: "the preferred version does not come first",
		file: "discovery/catalogue.go",
		old:  "versions = slices.Insert(versions, 0, v.Version)",
		new:  "versions = append(versions, v.Version)",
	},
	{
		name: "what the server lists is taken for absent",
		file: "discovery/catalogue.go",
		old:  "		if res.GVR == gvr {",
		new:  "		if res.GVR == gvr && false {",
	},
	{
		name: "a list of another group version passes",
		file: "discovery/ask.go",
		old:  "list.GroupVersion != gv.String() {",
		new:  "false {",
	},
	{
		name: "what is no discovery document is an empty one",
		file: "discovery/ask.go",
		old:  "return len(g.Versions) > 0 }",
		new:  "return true }",
	},
	{
		name: "verbs are not checked",
		file: "discovery/errors.go",
		old:  "		if !res.Supports(verb) {",
		new:  "		if false {",
	},
	{
		name: "subresources pass for resources",
		file: "discovery/catalogue.go",
		old:  ` && !strings.Contains(in.Name, "/") {`,
		new:  " {",
	},
	{
		name: "a question has no end",
		file: "discovery/options.go",
		old:  "			o.requestTimeout = timeout\n",
		new:  "			_ = timeout\n",
	},
}
