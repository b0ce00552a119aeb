#!/bin/sh
# One GPU, ten minutes at most: its profile, and real training steps beside their bills.
#
#   benchmarks/on_one_gpu.sh [FOLDER]     measures the GPU of this machine; results go to FOLDER/DEVICE-DATE,
#                                         FOLDER is benchmarks/gpu by itself
#   benchmarks/on_one_gpu.sh --dry-run    the same commands with a small model on a CPU; nothing is kept
#
# It needs outlay with its extra `verify`. OUTLAY says how outlay is called: OUTLAY="python -m outlay", say.
# What a real run leaves: profile.toml and calibrate.json; step-*.json, each a real step beside its bill, by the
# catalogue's constants and by the profile's; about.txt with the versions and what the driver says. Exit 0: all ran,
# whether or not they agree. Exit 1: something did not run; what did is kept, under a name that ends in .part.
set -eu

OUTLAY=${OUTLAY:-outlay}
LIMIT=${LIMIT:-600} # seconds for all of it
HERE=$(dirname "$0")
dry=false folder="$HERE/gpu"
case ${1:-} in
--dry-run) dry=true ;;
-*) echo "on_one_gpu.sh [--dry-run | FOLDER]" >&2 && exit 2 ;;
?*) folder=$1 ;;
esac

began=$(date +%s)
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'echo "interrupted" >&2; exit 130' INT TERM

left() { # seconds that are left
    echo $((LIMIT - $(date +%s) + began))
}

attempt() { # FILE COMMAND..: run within the time that is left; its answer goes to FILE. 1 is an answer too: it disagrees
    to=$1 && shift
    seconds=$(left)
    if [ "$seconds" -le 5 ]; then
        echo "not run, no time is left: $*" >&2
        failed=1
        return 0
    fi
    echo "$* (at most $seconds s)" >&2
    code=0
    timeout -k 5 "$seconds" "$@" >"$to" || code=$?
    if [ "$code" -gt 1 ]; then
        echo "ended with $code: $*" >&2
        failed=1
    fi
    return 0
}

if $dry; then
    where="" ranks=2 cases="$HERE/../docs/small-llama.json:--seq=64" device="--device=cpu" asked="--seq=64"
    model="$HERE/../docs/small-llama.json"
else
    where="" ranks=1 device="" model=llama-3.1-8b asked="--seq=4096"
    cases="llama-3.2-1b:--seq=8192 llama-3.1-8b:--seq=4096 llama-3.1-8b:--seq=4096,--recompute=full"
fi

# shellcheck disable=SC2086  # words of $OUTLAY, $asked and $device are meant to be several
attempt "$scratch/calibrate.json" $OUTLAY calibrate "$model" $asked --ranks "$ranks" --name "one-gpu" --json \
    --output "$scratch/profile.toml"
if [ ! -s "$scratch/profile.toml" ]; then
    echo "no profile: nothing is kept" >&2
    exit 1
fi
if [ -s "$scratch/profile-machine.toml" ]; then # the catalogue does not have this device
    where="${ranks}x$scratch/profile-machine.toml"
    name=machine
else
    name=$(sed -n '/^\[accelerator\]/,$ s/^name = "\(.*\)"$/\1/p' "$scratch/profile.toml" | head -n 1)
    where="${ranks}x$name"
fi

number=0
for each in $cases; do
    number=$((number + 1))
    flags=$(echo "${each#*:}" | tr ',' ' ')
    for by in catalogue profile; do
        [ "$by" = profile ] && with="--profile $scratch/profile.toml" || with=""
        # shellcheck disable=SC2086
        attempt "$scratch/step-$number-$by.json" $OUTLAY verify "${each%%:*}" --only step --on "$where" $device \
            $flags $with --json
    done
done

{
    date -u +%Y-%m-%dT%H:%M:%SZ
    $OUTLAY --version || true
    nvidia-smi || rocm-smi || true
    uptime || true
} >"$scratch/about.txt" 2>&1

if $dry; then
    echo "dry run: $number cases ran; nothing is kept" >&2
    exit "$failed"
fi
kept="$folder/$name-$(date -u +%Y-%m-%d-%H%M%S)"
[ "$failed" -eq 0 ] || kept="$kept.part"
mkdir -p "$kept"
cp "$scratch"/* "$kept/"
echo "$kept" # the answer
exit "$failed"
