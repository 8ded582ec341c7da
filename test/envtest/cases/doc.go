// Package cases has the cases of test/README.md: scenarios in which watches of dynamic types go wrong. Each row names the tests that show
// it. The rows with a scenario run it on gvrkit, and on client-go's dynamicinformer with the restart loop that programs write around it. The
// table of test/README.md has the outcomes of both. The package has only tests.
package cases
