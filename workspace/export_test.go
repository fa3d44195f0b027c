package workspace

// KindOfOS gives the tests the classification of errors of the system.
var KindOfOS = kindOf
