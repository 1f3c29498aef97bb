// Package errdefs holds the closed set of error kinds that Heddle's parts and its API agree on.
//
// A kind answers the only question that a caller may ask of an error: what to do now. Everything
// else that an error knows belongs into its message. To give an error a kind, wrap the sentinel,
//
//	fmt.Errorf("client %d: %w", id, errdefs.ErrNotFound)
//
// or use [Errorf] where the sentinel's own words would only repeat the message. To branch on a
// kind, use [errors.Is] with the sentinel; to carry it over the wire, use [Code] and [FromCode].
package errdefs

import (
	"errors"
	"fmt"
	"io/fs"
)

// Kind is one of the few reasons for which an operation did not happen.
type Kind uint8

// The kinds. Unknown is the kind of an error that nobody classified: a defect until shown
// otherwise.
const (
	Unknown          Kind = iota
	NotFound              // the thing named does not exist; naming another one may help
	Exists                // the thing to be made is there already
	Invalid               // the request can never work as it is; the caller must change it
	Busy                  // the thing is in use; the same request may work later
	Exhausted             // a quota or a table is full; freeing something helps
	Unsupported           // this machine, driver or version cannot do it
	Corrupt               // data that should be well-formed is not: a file, a segment, a message
	Unavailable           // a partner does not answer; retrying with patience may help
	PermissionDenied      // the caller may not do this

	kinds // number of kinds, Unknown included
)

// Sentinels for [errors.Is] and for wrapping with %w, one per kind.
var (
	ErrNotFound         error = kindError(NotFound)
	ErrExists           error = kindError(Exists)
	ErrInvalid          error = kindError(Invalid)
	ErrBusy             error = kindError(Busy)
	ErrExhausted        error = kindError(Exhausted)
	ErrUnsupported      error = kindError(Unsupported)
	ErrCorrupt          error = kindError(Corrupt)
	ErrUnavailable      error = kindError(Unavailable)
	ErrPermissionDenied error = kindError(PermissionDenied)
)

// kindError is the bare kind as an error. Its values are comparable constants, so the sentinels
// above are equal across packages without a pointer identity to protect.
type kindError Kind

func (e kindError) Error() string { return Kind(e).String() }

// String returns the kind in the words of an error message.
func (k Kind) String() string {
	switch k {
	case NotFound:
		return "not found"
	case Exists:
		return "already exists"
	case Invalid:
		return "invalid"
	case Busy:
		return "busy"
	case Exhausted:
		return "exhausted"
	case Unsupported:
		return "unsupported"
	case Corrupt:
		return "corrupt"
	case Unavailable:
		return "unavailable"
	case PermissionDenied:
		return "permission denied"
	default:
		return "unknown"
	}
}

// Err returns the sentinel of k, nil for Unknown and for numbers that are no kind.
func (k Kind) Err() error {
	if k == Unknown || k >= kinds {
		return nil
	}
	return kindError(k)
}

// classifiedError is an error whose kind is not part of its message.
type classifiedError struct {
	kind  Kind
	inner error
}

func (e *classifiedError) Error() string { return e.inner.Error() }

func (e *classifiedError) Unwrap() error { return e.inner }

func (e *classifiedError) Is(target error) bool {
	k, ok := target.(kindError)
	return ok && Kind(k) == e.kind
}

// Errorf formats as [fmt.Errorf] does, %w included, and gives the result the kind k. The outermost
// kind wins in [KindOf]: a layer that knows better what its caller can do may say so.
func Errorf(k Kind, format string, args ...any) error {
	return &classifiedError{kind: k, inner: fmt.Errorf(format, args...)}
}

// KindOf returns the kind of the outermost classified error in err's tree. Errors of the standard
// library that mean the same thing count as classified.
func KindOf(err error) Kind {
	if err == nil {
		return Unknown
	}
	if k := ownKind(err); k != Unknown {
		return k
	}
	switch u := err.(type) { //nolint:errorlint // walks the tree itself, outermost first
	case interface{ Unwrap() error }:
		return KindOf(u.Unwrap())
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			if k := KindOf(e); k != Unknown {
				return k
			}
		}
		return Unknown
	}
	return standardKind(err)
}

// ownKind looks at this one error, not at what it wraps.
func ownKind(err error) Kind {
	switch e := err.(type) { //nolint:errorlint // one node of the tree at a time
	case kindError:
		return Kind(e)
	case *classifiedError:
		return e.kind
	}
	is, ok := err.(interface{ Is(target error) bool })
	if !ok {
		return Unknown
	}
	for k := Unknown + 1; k < kinds; k++ {
		if is.Is(kindError(k)) {
			return k
		}
	}
	return standardKind(err)
}

// standardKind translates the portable errors of io/fs, which system call errors answer to.
func standardKind(err error) Kind {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrExist):
		return Exists
	case errors.Is(err, fs.ErrPermission):
		return PermissionDenied
	case errors.Is(err, fs.ErrInvalid):
		return Invalid
	default:
		return Unknown
	}
}
