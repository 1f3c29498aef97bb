#!/bin/sh
# The library exports exactly the names of the list: a client that looks one up finds it, and nothing of
# the software GPU itself leaks.
set -eu
library=$1 list=$2
got=$(nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort)
want=$(sed -n 's/^NVML_NAME(\(.*\))$/\1/p' "$list" | LC_ALL=C sort)
if [ "$got" != "$want" ]; then
	echo "$library does not export what $list lists" >&2
	exit 1
fi
echo "nvml: exports match the list"
