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
