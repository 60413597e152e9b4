#include "compare/values/postprocess.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"
#include "tensor/files/tensor_file.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/metrics_plain.h"

namespace msprobe {
namespace {

/// A key of the file and what it means.
struct MapKey {
  std::string_view section, key;
  bool golden, left;
};
constexpr std::array<MapKey, 8> kMaps = {{
    {"right_matmul", "target_tensor_map", false, false},
    {"right_matmul", "golden_tensor_map", true, false},
    {"left_matmul", "target_tensor_map", false, true},
    {"left_matmul", "golden_tensor_map", true, true},
    {"left_right_matmul", "left_target_tensor_map", false, true},
    {"left_right_matmul", "right_target_tensor_map", false, false},
    {"left_right_matmul", "left_golden_tensor_map", true, true},
    {"left_right_matmul", "right_golden_tensor_map", true, false},
}};

Status CheckKeys(const YamlNode& root, const std::string& path) {
  for (const YamlMember& section : root.members) {
    const bool known =
        std::any_of(kMaps.begin(), kMaps.end(), [&](const MapKey& m) { return m.section == section.first; });
    if (!known) {
      return BadInput(
          Msg("{} line {}: unknown key \"{}\": --config takes right_matmul, left_matmul and left_right_matmul", path,
              section.second.line, OneLine(section.first)));
    }
    if (!section.second.IsMap() && !section.second.IsNull()) {
      return BadInput(
          Msg("{} line {}: {} must hold maps of matrices", path, section.second.line, OneLine(section.first)));
    }
    for (const YamlMember& key : section.second.members) {
      std::string allowed;
      for (const MapKey& m : kMaps) {
        if (m.section == section.first) allowed += (allowed.empty() ? "" : ", ") + std::string(m.key);
      }
      if (Contains(", " + allowed + ",", ", " + key.first + ",")) continue;
      return BadInput(Msg("{} line {}: {} has no \"{}\": it has {}", path, key.second.line, OneLine(section.first),
                          OneLine(key.first), allowed));
    }
  }
  return OkStatus();
}

// ---- values

/// Elements in C order, dimensions of 1 left out.
struct Dense {
  std::vector<int64_t> shape;
  std::vector<double> values;
  bool narrow = true;  // float32 holds them
};

StatusOr<uint64_t> CountOf(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t n : shape) {
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(n), &count) || count > kMostProductBytes / sizeof(double)) {
      return BadInput(Msg("it is larger than 2 GiB"));
    }
  }
  return count;
}

/// Whether float32 holds every number of the type.
bool IsNarrow(DType t) { return t == DType::kFloat32 || ElementSize(t) < ElementSize(DType::kFloat32); }

StatusOr<Dense> ToDense(const FileTensor& tensor, bool squeeze) {
  if (tensor.dtype == DType::kUnknown || IsComplex(tensor.dtype)) {
    return BadInput(Msg("products are of real numbers, not of {}", DTypeName(tensor.dtype)));
  }
  Dense out;
  out.narrow = IsNarrow(tensor.dtype);
  for (const int64_t n : tensor.shape) {
    if (n != 1 || !squeeze) out.shape.push_back(n);
  }
  MSP_ASSIGN_OR_RETURN(const uint64_t count, CountOf(tensor.shape));
  out.values.reserve(count);
  if (count == 0) return out;
  Layout layout;
  if (!MakeLayout(tensor.view(), Order::kLogical, &layout)) return BadInput(Msg("it has too many dimensions"));
  const size_t element = layout.element;
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* data, size_t n) {
    for (size_t i = 0; i < n; ++i) out.values.push_back(plain::ValueAt(tensor.dtype, data + i * element).re);
  });
  return out;
}

constexpr int64_t kLongestSum = 1 << 20;

/// c = a b of [m, k] and [k, n]; each sum goes over k in order.
void Multiply(const double* a, const double* b, double* c, size_t m, size_t k, size_t n) {
  constexpr size_t kRows = 4, kColumns = 16;
  std::vector<double> panel(k * kColumns);
  for (size_t j = 0; j < n; j += kColumns) {
    const size_t columns = std::min(kColumns, n - j);
    std::fill(panel.begin(), panel.end(), 0.0);
    for (size_t p = 0; p < k; ++p) std::memcpy(&panel[p * kColumns], b + p * n + j, columns * sizeof(double));
    for (size_t i = 0; i < m; i += kRows) {
      const size_t rows = std::min(kRows, m - i);
      double sums[kRows][kColumns] = {};
      for (size_t p = 0; p < k; ++p) {
        for (size_t r = 0; r < rows; ++r) {
          const double factor = a[(i + r) * k + p];
          for (size_t q = 0; q < kColumns; ++q) sums[r][q] += factor * panel[p * kColumns + q];
        }
      }
      for (size_t r = 0; r < rows; ++r) std::memcpy(c + (i + r) * n + j, sums[r], columns * sizeof(double));
    }
  }
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (const int64_t n : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(n);
  return out + "]";
}

Status DoNotFit(const Dense& a, const Dense& b) {
  return BadInput(Msg("shapes {} and {} have no product", ShapeText(a.shape), ShapeText(b.shape)));
}

/// As numpy.matmul: the last two dimensions are matrices, those before them are broadcast, vectors are rows to the left
/// and columns to the right.
StatusOr<Dense> Matmul(const Dense& left, const Dense& right) {
  if (left.shape.empty() || right.shape.empty()) return DoNotFit(left, right);
  std::vector<int64_t> a = left.shape, b = right.shape;
  if (left.shape.size() == 1) a.insert(a.begin(), 1);
  if (right.shape.size() == 1) b.push_back(1);
  const int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  if (b[b.size() - 2] != k) return DoNotFit(left, right);
  if (k > kLongestSum) return BadInput(Msg("its sums would have more than a million terms"));
  const size_t dims = std::max(a.size(), b.size()) - 2;
  std::vector<int64_t> batch(dims);
  std::vector<size_t> a_step(dims), b_step(dims);
  size_t a_size = static_cast<size_t>(m * k), b_size = static_cast<size_t>(k * n);
  for (size_t d = dims; d-- > 0;) {
    const size_t behind = dims - d + 2;
    const int64_t x = a.size() >= behind ? a[a.size() - behind] : 1, y = b.size() >= behind ? b[b.size() - behind] : 1;
    if (x != y && x != 1 && y != 1) return DoNotFit(left, right);
    batch[d] = x == 1 ? y : x;
    a_step[d] = x == 1 ? 0 : a_size;
    b_step[d] = y == 1 ? 0 : b_size;
    a_size *= static_cast<size_t>(x);
    b_size *= static_cast<size_t>(y);
  }
  Dense out;
  out.narrow = left.narrow && right.narrow;
  out.shape = batch;
  if (left.shape.size() > 1) out.shape.push_back(m);
  if (right.shape.size() > 1) out.shape.push_back(n);
  MSP_ASSIGN_OR_RETURN(const uint64_t count, CountOf(out.shape));
  out.values.resize(count);
  if (count == 0) return out;
  const size_t matrix = static_cast<size_t>(m * n);
  std::vector<int64_t> at(dims, 0);
  for (size_t i = 0; i < count / matrix; ++i) {
    size_t from_a = 0, from_b = 0;
    for (size_t d = 0; d < dims; ++d) {
      from_a += static_cast<size_t>(at[d]) * a_step[d];
      from_b += static_cast<size_t>(at[d]) * b_step[d];
    }
    Multiply(left.values.data() + from_a, right.values.data() + from_b, out.values.data() + i * matrix,
             static_cast<size_t>(m), static_cast<size_t>(k), static_cast<size_t>(n));
    for (size_t d = dims; d-- > 0;) {
      if (++at[d] < batch[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace

StatusOr<std::unique_ptr<Postprocess>> Postprocess::Read(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
  if (!root.IsMap()) {
    return BadInput(
        Msg("{} must hold right_matmul, left_matmul or left_right_matmul, each with maps of matrices", path));
  }
  MSP_RETURN_IF_ERROR(CheckKeys(root, path));
  std::unique_ptr<Postprocess> out(new Postprocess);
  for (const MapKey& key : kMaps) {
    const YamlNode* section = root.Find(key.section);
    const YamlNode* map = section ? section->Find(key.key) : nullptr;
    if (!map || map->IsNull()) continue;
    if (!map->IsMap()) {
      return BadInput(
          Msg("{} line {}: {} must have paths of matrices, each with a list of data names", path, map->line, key.key));
    }
    // A name that stands below several matrices has the last, as the file is read.
    std::map<std::string, std::string> matrix_of;
    for (const YamlMember& matrix : map->members) {
      const auto bad = [&](int line) {
        return BadInput(Msg("{} line {}: \"{}\" must have a list of data names", path, line, OneLine(matrix.first)));
      };
      if (!matrix.second.IsList()) return bad(matrix.second.line);
      for (const YamlNode& name : matrix.second.items) {
        if (!name.IsText()) return bad(name.line);
        matrix_of[name.text] = matrix.first;
      }
    }
    Side& side = key.golden ? out->golden_ : out->target_;
    for (const auto& [name, matrix] : matrix_of) side[name].steps.push_back({key.left, matrix});
  }
  if (out->target_.empty() && out->golden_.empty())
    return BadInput(Msg("{} names no tensor: leave --config out", path));
  return out;
}

const std::vector<MatmulStep>* Postprocess::Steps(const Side& side, std::string_view data_name) {
  const auto it = side.find(data_name);
  if (it == side.end()) return nullptr;
  it->second.used.store(true, std::memory_order_relaxed);
  return &it->second.steps;
}

std::vector<std::string> Postprocess::Unused() const {
  std::vector<std::string> out;
  for (const Side* side : {&target_, &golden_}) {
    for (const auto& [name, entry] : *side) {
      if (!entry.used.load(std::memory_order_relaxed)) out.push_back(name);
    }
  }
  return out;
}

Status OwnTensor::Fill(DType dtype, std::vector<int64_t> shape, std::vector<char> bytes) {
  tensor_.dtype = dtype;
  tensor_.shape = std::move(shape);
  bytes_ = std::move(bytes);
  uint64_t size = 0;
  if (!SetContiguous(&tensor_, UINT64_MAX, &size) || size != bytes_.size())
    return InternalError(Msg("a tensor is cut"));
  tensor_.data = bytes_.data();
  return OkStatus();
}

StatusOr<OwnTensor> OwnTensor::Product(const FileTensor& tensor, const std::vector<MatmulStep>& steps) {
  MSP_ASSIGN_OR_RETURN(Dense value, ToDense(tensor, true));
  for (const MatmulStep& step : steps) {
    MSP_ASSIGN_OR_RETURN(const TensorFile file, TensorFile::Open(step.path));
    if (!file.tensor()) return BadInput(Msg("{} does not hold one tensor", step.path));
    StatusOr<Dense> matrix = ToDense(*file.tensor(), false);
    if (!matrix.ok()) return BadInput(Msg("{}: {}", step.path, matrix.status().text()));
    StatusOr<Dense> product = step.left ? Matmul(*matrix, value) : Matmul(value, *matrix);
    if (!product.ok()) return BadInput(Msg("{}: {}", step.path, product.status().text()));
    value = std::move(*product);
  }
  std::vector<char> bytes(value.values.size() * (value.narrow ? sizeof(float) : sizeof(double)));
  if (value.narrow) {
    for (size_t i = 0; i < value.values.size(); ++i) {
      const float v = static_cast<float>(value.values[i]);
      std::memcpy(&bytes[i * sizeof v], &v, sizeof v);
    }
  } else if (!bytes.empty()) {
    std::memcpy(bytes.data(), value.values.data(), bytes.size());
  }
  OwnTensor out;
  MSP_RETURN_IF_ERROR(
      out.Fill(value.narrow ? DType::kFloat32 : DType::kFloat64, std::move(value.shape), std::move(bytes)));
  return out;
}

StatusOr<OwnTensor> OwnTensor::ValidPart(const FileTensor& tensor, int64_t valid) {
  const size_t element = ElementSize(tensor.dtype);
  std::vector<int64_t> shape;
  uint64_t count = 1;
  for (const int64_t n : tensor.shape) {
    if (n != 1) shape.push_back(n);
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(n), &count) || count > kMostProductBytes / 16) {
      return BadInput(Msg("it is too large to be cut to its valid length"));
    }
  }
  Layout layout;
  if (element == 0 || !MakeLayout(tensor.view(), Order::kLogical, &layout))
    return BadInput(Msg("its dtype is unknown"));
  std::vector<char> bytes;
  bytes.reserve(count * element);
  if (count > 0) {
    const int64_t rows = shape.empty() ? 1 : shape[0];
    const int64_t keep = shape.empty() ? 1 : std::clamp<int64_t>(valid, 0, rows);
    const int64_t kept = static_cast<int64_t>(count) / rows * keep;
    LayoutWalker(layout).Walk(0, kept,
                              [&](const char* data, size_t n) { bytes.insert(bytes.end(), data, data + n * element); });
    bytes.resize(count * element, 0);
  }
  OwnTensor out;
  MSP_RETURN_IF_ERROR(out.Fill(tensor.dtype, std::move(shape), std::move(bytes)));
  return out;
}

std::string_view ValidLengthKey(std::string_view op_name) {
  if (Contains(op_name, "npu_grouped_matmul")) return "group_list";
  if (Contains(op_name, "npu_dequant_swiglu_quant")) return "group_index";
  return {};
}

int64_t ValidLength(const FileTensor& groups) {
  if (!IsInteger(groups.dtype) && groups.dtype != DType::kBool) return -1;
  Layout layout;
  if (!MakeLayout(groups.view(), Order::kLogical, &layout)) return -1;
  __int128 sum = 0;
  if (layout.count > 0) {
    LayoutWalker(layout).Walk(0, layout.count, [&](const char* data, size_t n) {
      for (size_t i = 0; i < n; ++i) sum += plain::ValueAt(groups.dtype, data + i * layout.element).whole;
    });
  }
  return sum < 0 || sum > INT64_MAX ? -1 : static_cast<int64_t>(sum);
}

}  // namespace msprobe
