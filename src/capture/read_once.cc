#include "capture/read_once.h"

namespace msprobe {
namespace {

bool IsInOrder(const TensorView& view) {
  if (view.strides == nullptr) return true;
  int64_t step = 1;
  for (int d = view.ndim - 1; d >= 0; --d) {
    if (view.shape[d] != 1 && view.strides[d] != step) return false;
    step *= view.shape[d];
  }
  return true;
}

}  // namespace

void ReadOnce::Enter(uint64_t hook) {
  if (hook_ == hook) return;
  hook_ = hook;
  used_ = 0;
}

bool ReadOnce::Find(const TensorView& view, int64_t count, TensorRecord* t) const {
  if (used_ == 0 || count < kMinElements || !IsInOrder(view)) return false;
  for (size_t i = 0; i < used_; ++i) {
    const Entry& e = entries_[i];
    if (e.data != view.data || e.dtype != view.dtype || e.count != count) continue;
    CopyValues(e.values, t);
    return true;
  }
  return false;
}

void ReadOnce::Add(const TensorView& view, int64_t count, const TensorRecord& t) {
  if (used_ == entries_.size() || count < kMinElements || !IsInOrder(view)) return;
  entries_[used_++] = {view.data, view.dtype, count, t};
}

void CopyValues(const TensorRecord& from, TensorRecord* to) {
  to->stats = from.stats;
  to->crc = from.crc;
  to->xor_digest = from.xor_digest;
  to->has_stats = from.has_stats;
  to->has_crc = from.has_crc;
}

}  // namespace msprobe
