#!/bin/sh
# Environments of frameworks whose own code judges exported files, one each in .venv-frameworks/NAME, made once.
# Torch, pytest and outlay come from .venv-real through a .pth (`make test-real` makes it; REAL=DIR names another one).
#   sh tests/frameworks.sh                  make them all, then run the tests of each
#   sh tests/frameworks.sh torchtitan       the same for one; --make only makes it
# None is part of `make test-real`: the tests skip where an environment is absent.
set -eu
cd "$(dirname "$0")/.."
REAL=${REAL:-.venv-real}
SHARED=$("$REAL/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

# environment NAME PACKAGE...: --no-deps, so that no package brings another torch. Prints where its packages are.
environment() {
    name=$1
    shift
    home=.venv-frameworks/$name
    site=$home/lib/python3.11/site-packages
    if [ ! -e "$home/.made" ]; then
        echo "making $home" >&2
        "$REAL/bin/python" -m venv --clear --without-pip "$home"
        echo "$SHARED" > "$site/shared.pth"
        "$REAL/bin/python" -m pip -q --disable-pip-version-check --no-input install --no-deps --target "$site" "$@" >&2
    fi
    echo "$site"
}

made() { touch ".venv-frameworks/$1/.made"; }

# test_with NAME FILE...: what pytest finds there, with the packages of that environment.
test_with() {
    name=$1
    shift
    [ "$MAKE_ONLY" ] || PYTHONPATH=src:tests ".venv-frameworks/$name/bin/python" -P -m pytest -q --confcutdir=tests "$@"
}

torchtitan() {
    site=$(environment torchtitan torchtitan==0.3.0 tyro==1.0.17 typeguard docstring-parser shtab spmd_types==0.2.3 \
        torchdata torch_checkpointing tensorboard protobuf absl-py triton==3.9.0)
    # A stand-in: the registry imports the data sets of Hugging Face, and no test reads one.
    mkdir -p "$site/datasets"
    printf 'class Dataset: ...\n\n\ndef load_dataset(*_, **__): ...\n' > "$site/datasets/__init__.py"
    printf 'def split_dataset_by_node(*_, **__): ...\n' > "$site/datasets/distributed.py"
    made torchtitan
    test_with torchtitan tests/real/test_format_torchtitan.py
}

megatron() {
    environment megatron megatron-core==0.16.1 > /dev/null  # the last one for Python 3.11
    made megatron
    test_with megatron tests/real/test_format_megatron.py
}

ALL="torchtitan megatron"
MAKE_ONLY=
CHOSEN=
for word in "$@"; do
    case $word in
    --make) MAKE_ONLY=1 ;;
    *) CHOSEN="$CHOSEN $word" ;;
    esac
done
for name in ${CHOSEN:-$ALL}; do "$name"; done
