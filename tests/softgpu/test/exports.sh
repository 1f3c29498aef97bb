#!/bin/sh
# The built libraries export what they should: the whole list, and no implementation is hidden
# behind a stub.
set -eu
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort
}

"$build/softgpu/bin/softgpu" names | sort > "$work/names"
"$build/softgpu/bin/softgpu" names --until 11080 | sort > "$work/old"
{ cat "$work/names"; echo cuSoftgpuFuture; } | sort > "$work/new"
for library in softgpu:names softgpu-plt:names softgpu-old:old softgpu-new:new; do
    exported "$build/${library%:*}/libcuda.so.1" > "$work/have"
    if ! diff "$work/${library#*:}" "$work/have" > "$work/diff"; then
        echo "exports.sh: $build/${library%:*}/libcuda.so.1 exports another set of names:" >&2
        cat "$work/diff" >&2
        failed=1
    fi
done

# Implemented: a strong definition in some object of ours. Each has to be the one that was linked,
# so its symbol must not be weak.
nm --defined-only "$build"/softgpu/obj/plain/src/*.o 2> /dev/null |
    awk '$2 == "T" && $3 ~ /^cu/ { print $3 }' | sort > "$work/strong"
nm -D --defined-only "$build/softgpu/libcuda.so.1" | awk '$2 == "W" { print $3 }' | sort > "$work/weak"
comm -12 "$work/strong" "$work/weak" > "$work/shadowed"
if [ -s "$work/shadowed" ]; then
    echo "exports.sh: implemented, but a stub is linked:" >&2
    cat "$work/shadowed" >&2
    failed=1
fi
comm -23 "$work/strong" "$work/names" > "$work/unlisted"
if [ -s "$work/unlisted" ]; then
    echo "exports.sh: implemented, but not in the list of names:" >&2
    cat "$work/unlisted" >&2
    failed=1
fi
if [ $failed = 0 ]; then
    echo "exports.sh: ok ($(wc -l < "$work/strong") of $(wc -l < "$work/names") names implemented)"
fi
exit $failed
