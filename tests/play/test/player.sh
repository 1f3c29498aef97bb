#!/bin/bash
# player.sh PLAYER DRIVER_FOLDER WORKLOADS: the whole player, on a driver that does right and on one that does wrong.
set -uo pipefail
player=$1 driver=$2 tables=$3
failures=0
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# expect WHAT CODE PATTERN [NAME=VALUE...] ARG...: runs the player and looks at its exit code and its output.
expect() {
    local what=$1 want=$2 pattern=$3 out code env=(LD_LIBRARY_PATH="$driver")
    shift 3
    while [[ ${1-} == [A-Z]*=* ]]; do
        env+=("$1")
        shift
    done
    out=$(timeout --foreground --preserve-status -k 20 "${limit:-60}" env "${env[@]}" "$player" "$@" 2>&1)
    code=$?
    if [[ $code -ne $want || ! $out =~ $pattern ]]; then
        printf '%s: exit %d (want %d), said: %s\n' "$what" "$code" "$want" "$out" >&2
        failures=$((failures + 1))
    fi
}

infer=(--table "$tables/small-inference.csv" --mode infer --duration 0.1 --warmup 0)
train=(--table "$tables/small-training.csv" --mode train --duration 0.1 --warmup 0)

expect "a service" 0 '"p99_ms":[0-9.]+,.*"checked":true' "${infer[@]}" --json
expect "a service in text" 0 'results     right after [0-9]+ passes' "${infer[@]}"
expect "an open loop" 0 '"arrivals":"poisson:500",.*"requests":[1-9]' "${infer[@]}" --arrivals poisson:500 --json
expect "a job" 0 '"iterations":[1-9][0-9]*,"it_s":[1-9]' "${train[@]}" --json
expect "a job as a graph" 0 '"graph":true' "${train[@]}" --graph --json
expect "progress" 0 '"begun":[0-9]+,"done":[0-9]+' "${train[@]}" --status 20
# A pipe that is full already, and stays so: nobody reads it.
mkfifo "$work/full"
exec 9<>"$work/full"
dd if=/dev/zero of=/proc/self/fd/9 oflag=nonblock bs=4096 2>/dev/null
expect "progress that nobody reads" 0 '"checked":true' "${train[@]}" --status 5 --status-fd 9 --json
exec 9>&-
expect "a name to be quoted" 0 '"device":"test \\"driver\\""' "${infer[@]}" --json
expect "a start in step with others" 0 'ready' --ready-fd 1 --start-at 1 "${infer[@]}"
expect "the module" 0 'softgpu.kernel .* busy time_ns=param:1' --table "$tables/training.csv" --ptx

# stopped WHAT ARG...: a player with minutes to sleep ends soon after SIGTERM, whichever thread it was that slept.
stopped() {
    local what=$1 code
    shift
    LD_LIBRARY_PATH=$driver timeout --foreground -k 20 60 "$player" --table "$tables/small-inference.csv" --mode infer --json \
        --duration 86400 --ready-fd 8 "$@" 8>"$work/ready" >"$work/said" 2>&1 &
    head -n 1 "$work/ready" >/dev/null
    sleep 0.2 # until it sleeps; were it late, it would only be told earlier
    kill -TERM $! || failures=$((failures + 1))
    wait $!
    code=$?
    if [[ $code -ne 0 ]] || ! grep -q '"checked":true' "$work/said"; then
        printf '%s: exit %d, said: %s\n' "$what" "$code" "$(<"$work/said")" >&2
        failures=$((failures + 1))
    fi
}

mkfifo "$work/ready" "$work/start"
stopped "SIGTERM before the next request" --arrivals poisson:0.001
stopped "SIGTERM before the start" --start-at 9000000000000000000
stopped "SIGTERM before the word to start" --start-fd 9 9<>"$work/start"

expect "a lost kernel" 3 'wrong results' PLAY_TEST_FAULT=lose:100 "${train[@]}"
expect "a doubled kernel" 3 'wrong results' PLAY_TEST_FAULT=double:100 "${train[@]}"
expect "two kernels out of order" 3 'wrong results' PLAY_TEST_FAULT=swap:100 "${train[@]}"
expect "a lost kernel of a graph" 3 'wrong results' PLAY_TEST_FAULT=lose:100 "${train[@]}" --graph
expect "a refused launch" 1 'cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED \(719\)' PLAY_TEST_FAULT=fail:100 "${train[@]}"

expect "a launch that hangs" 4 'stuck 0.300 s .*main: waiting for the lanes,.*lane 0: playing, .*pass [0-9]+, last call cuLaunchKernel' \
    PLAY_TEST_FAULT=hang:700 "${train[@]}" --patience 0.3
expect "a graph that hangs" 4 'lane 0: playing, .*last call cuGraphLaunch' \
    PLAY_TEST_FAULT=hang:700 "${train[@]}" --graph --patience 0.3
limit=2 expect "a hang before the start, and SIGTERM" 4 'main: opening, .*last call cuLaunchKernel' \
    PLAY_TEST_FAULT=hang:1 "${train[@]}" --patience 0.3
expect "patience without need" 0 '"checked":true' "${train[@]}" --patience 0.3 --json

if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then # a machine with a driver finds it anywhere
    expect "no driver" 1 'open the CUDA driver library: ' LD_LIBRARY_PATH=/nonexistent "${infer[@]}"
fi
expect "no such device" 1 'device 3: there are 1' "${infer[@]}" --device 3
expect "no such table" 2 'open /nonexistent.csv: No such file' --table /nonexistent.csv --mode train
expect "no table at all" 2 'read kernel table .*: empty' --table /dev/null --mode train
expect "no such arrivals" 2 'open /nonexistent.json' "${infer[@]}" --arrivals /nonexistent.json
expect "wrong use" 2 '^heddle-play: --bogus: unknown option, see --help$' --bogus

exit $((failures > 0))
