package packed

import "github.com/gvrkit/gvrkit/internal/wire"

// Option returns an option of package dynamicclient for a client whose watches return the objects of read, and whose lists
// have them where [wire.Take] finds them. An object or list that is not ordinary is unstructured, and one that can't be decoded
// is an *undecodable.Object. Package dynamicclient sets it during initialisation, and it must not be changed later.
var Option func(read wire.Read) any

// Forget makes a packer of package packed, which sets it during initialization, begin a new dictionary. The packer has no objects in use.
var Forget func(packer any)

// Reader returns the function that makes the objects of a packer of package packed, which sets it during
// initialisation. It must not be changed later.
var Reader func(packer any) wire.Read
