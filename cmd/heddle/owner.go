package main

import (
	"io/fs"
	"os/user"
	"strconv"
	"syscall"
)

// owner names the user and group of a file as "user:group".
func owner(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "?:?"
	}
	uid, gid := strconv.Itoa(int(stat.Uid)), strconv.Itoa(int(stat.Gid))
	if u, err := user.LookupId(uid); err == nil {
		uid = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		gid = g.Name
	}
	return uid + ":" + gid
}
