// A declared layout: which dimension of which tensor is divided among which ranks, from a YAML file.
//
//   default: auto                      # tensors that no rule names: auto (judged by their values) or replica
//   layout:
//     "*.ColumnParallelLinear.forward*":
//       input.0: s b h                 # whole on every rank: a difference is a finding
//       output.0: s b h[tp]            # the last dimension is split over the tensor parallel ranks
//       parameters.weight: o[tp] i
//     "*.RowParallelLinear.forward*/Functional.linear*":   # a call inside a module
//       output.0: s b h partial[tp]    # every rank holds a summand
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

class JsonWriter;

enum class Axis : uint8_t { kTp, kCp, kEp };
inline constexpr std::array<Axis, 3> kAxes{Axis::kTp, Axis::kCp, Axis::kEp};
std::string_view AxisName(Axis axis);  // "tp"

enum class Share : uint8_t { kAuto, kReplica, kSplit, kPartial };
std::string_view ShareName(Share share);

struct TensorLayout {
  std::array<Share, 3> share{};        // by axis
  std::array<int, 3> dim{-1, -1, -1};  // of kSplit
  int dims = -1;                       // how many there are; -1: not said
  int line = 0;                        // of the rule; 0: none
  Share Of(Axis a) const { return share[static_cast<size_t>(a)]; }
};

class MergeLayout {
 public:
  /// kBadInput with path, line and key for what is not a layout.
  static StatusOr<MergeLayout> Read(const std::string& path);
  static StatusOr<MergeLayout> Parse(std::string_view text, const std::string& path);

  bool empty() const { return path_.empty(); }
  const std::string& path() const { return path_; }
  /// `tensor` is what follows the node's name: "input.0", "parameters.weight". The first rule that names it counts.
  TensorLayout Of(std::string_view node, std::string_view parent, std::string_view tensor) const;
  void Write(JsonWriter* json) const;

 private:
  struct Tensor {
    std::string pattern, text;
    TensorLayout layout;
  };
  struct Rule {
    std::string pattern;
    std::vector<Tensor> tensors;
  };
  friend class LayoutReader;
  std::string path_;
  Share fallback_ = Share::kAuto;
  std::vector<Rule> rules_;
};

}  // namespace msprobe
