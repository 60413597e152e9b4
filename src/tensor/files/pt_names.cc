#include "tensor/files/pt_names.h"

#include <algorithm>
#include <iterator>

namespace msprobe {
namespace {

constexpr PtStorage kStorages[] = {
    {"torch FloatStorage", DType::kFloat32},
    {"torch DoubleStorage", DType::kFloat64},
    {"torch HalfStorage", DType::kFloat16},
    {"torch BFloat16Storage", DType::kBFloat16},
    {"torch CharStorage", DType::kInt8},
    {"torch ShortStorage", DType::kInt16},
    {"torch IntStorage", DType::kInt32},
    {"torch LongStorage", DType::kInt64},
    {"torch ByteStorage", DType::kUInt8},
    {"torch BoolStorage", DType::kBool},
    {"torch ComplexFloatStorage", DType::kComplex64},
    {"torch ComplexDoubleStorage", DType::kComplex128},
    {"torch QInt8Storage", DType::kInt8},
    {"torch QUInt8Storage", DType::kUInt8},
    {"torch QInt32Storage", DType::kInt32},
    {"torch.storage UntypedStorage", DType::kUnknown},
};

constexpr std::string_view kOpaque[] = {
    "torch._utils _rebuild_sparse_tensor",          "torch._utils _rebuild_sparse_csr_tensor",
    "torch._utils _rebuild_nested_tensor",          "torch._utils _rebuild_qtensor",
    "torch._utils _rebuild_meta_tensor_no_storage", "torch.serialization _get_layout",
};
constexpr std::string_view kNames[] = {
    "collections OrderedDict",
    "torch Size",
    "torch Tensor",
    "torch.nn.parameter Parameter",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch._tensor _rebuild_from_type_v2",
    "torch._utils _rebuild_device_tensor_from_cpu_tensor",
    "torch_npu.utils.storage _rebuild_npu_tensor",
    "torch_npu.npu._format Format",
    "torch per_tensor_affine",
    "torch per_channel_affine",
};

}  // namespace

const PtStorage* FindPtStorage(std::string_view name) {
  const auto* found = std::find_if(std::begin(kStorages), std::end(kStorages), [&](auto& s) { return s.name == name; });
  return found == std::end(kStorages) ? nullptr : found;
}

DType PtDType(std::string_view name) {
  constexpr std::string_view kTorch = "torch ";
  return name.starts_with(kTorch) ? ParseDType(name.substr(kTorch.size())) : DType::kUnknown;
}

std::string_view KnownPtName(std::string_view name) {
  if (const PtStorage* storage = FindPtStorage(name)) return storage->name;
  for (const std::string_view known : kNames) {
    if (known == name) return known;
  }
  for (const std::string_view known : kOpaque) {
    if (known == name) return known;
  }
  return {};
}

bool IsHostilePtCall(std::string_view module, std::string_view name) {
  // Whole modules, but for what `kPlain` names.
  constexpr std::string_view kModules[] = {"os",         "posix",
                                           "nt",         "sys",
                                           "subprocess", "shutil",
                                           "socket",     "ctypes",
                                           "runpy",      "code",
                                           "codeop",     "pty",
                                           "pdb",        "bdb",
                                           "timeit",     "importlib",
                                           "imp",        "pickle",
                                           "_pickle",    "marshal",
                                           "webbrowser", "http",
                                           "urllib",     "requests",
                                           "tempfile",   "signal",
                                           "_signal",    "threading",
                                           "_thread",    "asyncio",
                                           "popen2",     "commands",
                                           "cProfile",   "profile",
                                           "trace",      "doctest",
                                           "pip",        "venv",
                                           "zipimport",  "pkgutil",
                                           "smtplib",    "ftplib",
                                           "glob",       "telnetlib",
                                           "linecache",  "multiprocessing"};
  constexpr std::string_view kPlain[] = {"stat_result",  "statvfs_result", "terminal_size", "uname_result",
                                         "times_result", "sched_param",    "_Environ",      "PathLike"};
  constexpr std::string_view kBuiltins[] = {"eval",    "exec",       "compile", "open",  "__import__", "execfile",
                                            "input",   "breakpoint", "exit",    "quit",  "setattr",    "delattr",
                                            "globals", "locals",     "vars",    "apply", "file",       "print"};
  constexpr std::string_view kFiles[] = {"open", "open_code", "FileIO", "OpenWrapper"};
  const auto in = [&](const auto& names, std::string_view wanted) {
    return std::find(std::begin(names), std::end(names), wanted) != std::end(names);
  };
  if (module == "builtins" || module == "__builtin__") return in(kBuiltins, name);
  if (module == "io" || module == "_io" || module == "_pyio") return in(kFiles, name);
  if (module == "os.path" || module == "urllib.parse" || module == "http.cookies") return false;
  const std::string_view top = module.substr(0, module.find('.'));
  if (!in(kModules, top) || in(kPlain, name)) return false;
  // signal.Signals, http.HTTPStatus, socket.AddressFamily: enums have the names of classes.
  const bool enums = module == "signal" || module == "_signal" || module == "http" || module == "socket";
  return !enums || name.empty() || name[0] < 'A' || name[0] > 'Z';
}

bool IsOpaquePtFunction(std::string_view name) {
  return std::find(std::begin(kOpaque), std::end(kOpaque), name) != std::end(kOpaque);
}

}  // namespace msprobe
