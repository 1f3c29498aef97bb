package errdefs

import (
	"context"
	"errors"
)

// The codes of gRPC and Connect that errors of Heddle use. The numbers are part of those
// protocols; they are repeated here so that a leaf package does not pull in an RPC library.
const (
	codeCanceled           = 1
	codeUnknown            = 2
	codeInvalidArgument    = 3
	codeDeadlineExceeded   = 4
	codeNotFound           = 5
	codeAlreadyExists      = 6
	codePermissionDenied   = 7
	codeResourceExhausted  = 8
	codeFailedPrecondition = 9
	codeUnimplemented      = 12
	codeUnavailable        = 14
	codeDataLoss           = 15
)

// Code returns the Connect code of the kind.
func (k Kind) Code() uint32 {
	switch k {
	case NotFound:
		return codeNotFound
	case Exists:
		return codeAlreadyExists
	case Invalid:
		return codeInvalidArgument
	case Busy:
		return codeFailedPrecondition
	case Exhausted:
		return codeResourceExhausted
	case Unsupported:
		return codeUnimplemented
	case Corrupt:
		return codeDataLoss
	case Unavailable:
		return codeUnavailable
	case PermissionDenied:
		return codePermissionDenied
	default:
		return codeUnknown
	}
}

// KindOfCode returns the kind that a Connect code stands for, Unknown if it stands for none.
func KindOfCode(code uint32) Kind {
	for k := Unknown + 1; k < kinds; k++ {
		if k.Code() == code {
			return k
		}
	}
	return Unknown
}

// Code returns the Connect code for err. A call that was given up, or ran out of time, has a code
// of its own and no kind: nothing is known about the operation.
func Code(err error) uint32 {
	if k := KindOf(err); k != Unknown {
		return k.Code()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return codeCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return codeDeadlineExceeded
	default:
		return codeUnknown
	}
}

// FromCode is the receiving side of [Code]: an error that says message and answers [errors.Is] as
// the sender's did.
func FromCode(code uint32, message string) error {
	inner := errors.New(message)
	switch code {
	case codeCanceled:
		return &givenUpError{inner: inner, cause: context.Canceled}
	case codeDeadlineExceeded:
		return &givenUpError{inner: inner, cause: context.DeadlineExceeded}
	}
	if k := KindOfCode(code); k != Unknown {
		return &classifiedError{kind: k, inner: inner}
	}
	return inner
}

// givenUpError carries the two context errors over the wire under the sender's words.
type givenUpError struct {
	inner error
	cause error
}

func (e *givenUpError) Error() string { return e.inner.Error() }

func (e *givenUpError) Unwrap() error { return e.cause }
