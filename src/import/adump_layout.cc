#include "import/adump_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace msprobe {
namespace {

using Shape = std::vector<int64_t>;

/// Axes of the device that make one axis of the host, the slowest first.
using Group = std::vector<size_t>;

struct Plan {
  Shape device;  // its axes, where a format folds several into one taken apart
  std::vector<Group> groups;
};

/// The last `n` axes of a shape.
bool Tail(const Shape& shape, size_t n, Shape* out) {
  if (shape.size() != n) return false;
  *out = shape;
  return true;
}

/// [C1*H*W, N1, N0, C0] of a filter: the host's shape says how the first axis folds.
bool UnfoldFilter(const Shape& device, const Shape& host, Plan* plan) {
  constexpr size_t kFilter = 4;
  const bool three = host.size() == kFilter + 1;  // NCDHW
  if (device.size() != kFilter || (host.size() != kFilter && !three)) return false;
  const int64_t depth = three ? host[2] : 1, height = host[host.size() - 2], width = host.back();
  int64_t area = 0;
  if (__builtin_mul_overflow(depth, height, &area) || __builtin_mul_overflow(area, width, &area)) return false;
  if (area <= 0 || device[0] % area != 0) return false;
  plan->device = {depth, device[0] / area, height, width, device[1], device[2], device[3]};
  plan->groups = {{4, 5}, {1, 6}};
  if (three) plan->groups.push_back({0});
  plan->groups.push_back({2});
  plan->groups.push_back({3});
  return true;
}

bool MakePlan(AscendFormat format, const Shape& device, const Shape& host, Plan* plan) {
  switch (format) {
    case AscendFormat::kNc1hwc0:
    case AscendFormat::kNc1hwc0C04: plan->groups = {{0}, {1, 4}, {2}, {3}}; return Tail(device, 5, &plan->device);
    case AscendFormat::kNdc1hwc0: plan->groups = {{0}, {2, 5}, {1}, {3}, {4}}; return Tail(device, 6, &plan->device);
    case AscendFormat::kC1hwnc0: plan->groups = {{3}, {0, 4}, {1}, {2}}; return Tail(device, 5, &plan->device);
    case AscendFormat::kFractalNz: {
      if (device.size() < 4) return false;
      const size_t batch = device.size() - 4;
      plan->device = device;
      plan->groups.resize(batch);
      for (size_t i = 0; i < batch; ++i) plan->groups[i] = {i};
      plan->groups.push_back({batch + 1, batch + 2});
      plan->groups.push_back({batch, batch + 3});
      return true;
    }
    case AscendFormat::kFractalZ:
    case AscendFormat::kFractalZ3d: return UnfoldFilter(device, host, plan);
    default: return false;
  }
}

bool KeepsOrder(AscendFormat format) {
  constexpr std::array kAsTheyAre = {AscendFormat::kNchw, AscendFormat::kNhwc,  AscendFormat::kNd,
                                     AscendFormat::kHwcn, AscendFormat::kNdhwc, AscendFormat::kNcdhw};
  return std::find(kAsTheyAre.begin(), kAsTheyAre.end(), format) != kAsTheyAre.end();
}

/// Whether the host's tensor lies within the device's, which is padded.
bool Fits(const Plan& plan, const Shape& host) {
  if (plan.groups.size() != host.size()) return false;
  for (size_t axis = 0; axis < host.size(); ++axis) {
    int64_t room = 1;
    for (const size_t d : plan.groups[axis]) room *= plan.device[d];  // products of a shape that was counted
    if (host[axis] > room) return false;
  }
  return true;
}

/// Where each index of one host axis is on the device, in elements.
std::vector<int64_t> Offsets(const Plan& plan, const Shape& strides, size_t axis, int64_t length) {
  std::vector<int64_t> out(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    int64_t rest = i, offset = 0;
    const Group& group = plan.groups[axis];
    for (size_t k = group.size(); k-- > 0;) {
      offset += rest % plan.device[group[k]] * strides[group[k]];
      rest /= plan.device[group[k]];
    }
    out[static_cast<size_t>(i)] = offset;
  }
  return out;
}

void Gather(const AdumpTensor& tensor, const Plan& plan, const Shape& host, std::vector<char>* out) {
  Shape strides(plan.device.size(), 1);
  for (size_t d = plan.device.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * plan.device[d + 1];
  std::vector<std::vector<int64_t>> offsets;
  for (size_t axis = 0; axis < host.size(); ++axis) offsets.push_back(Offsets(plan, strides, axis, host[axis]));
  const size_t element = ElementSize(tensor.tensor.dtype);
  const size_t count = out->size() / element;
  const char* const from = static_cast<const char*>(tensor.tensor.data);
  std::vector<size_t> index(host.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < host.size(); ++axis) at += offsets[axis][index[axis]];
    std::memcpy(out->data() + i * element, from + static_cast<size_t>(at) * element, element);
    for (size_t axis = host.size(); axis-- > 0;) {
      if (++index[axis] < offsets[axis].size()) break;
      index[axis] = 0;
    }
  }
}

}  // namespace

HostTensor ToHost(const AdumpTensor& tensor) {
  HostTensor out{tensor.tensor, {}, false};
  if (KeepsOrder(tensor.format) || tensor.tensor.shape.empty()) return out;
  Plan plan;
  const Shape& host = tensor.original_shape;
  FileTensor shaped = tensor.tensor;
  shaped.shape = host;
  uint64_t bytes = 0;
  out.device_order = true;
  if (host.empty() || !MakePlan(tensor.format, tensor.tensor.shape, host, &plan) || !Fits(plan, host)) return out;
  if (!SetContiguous(&shaped, tensor.bytes.size(), &bytes)) return out;
  out.device_order = false;
  out.copy.resize(bytes);
  if (bytes > 0) Gather(tensor, plan, host, &out.copy);
  shaped.data = out.copy.data();
  out.tensor = std::move(shaped);
  return out;
}

}  // namespace msprobe
