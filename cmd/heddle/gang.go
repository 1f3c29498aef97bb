package main

import (
	"fmt"

	"github.com/heddle-project/heddle/runtime/config"
)

// gangFlag is a --gang flag: the name of a job and the number of its ranks.
type gangFlag struct {
	name string
	size int
}

func (f *gangFlag) String() string {
	if f.name == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", f.name, f.size)
}

func (f *gangFlag) Type() string { return "NAME:N" }

func (f *gangFlag) Set(s string) (err error) {
	f.name, f.size, err = config.ParseGang(s)
	return err
}
