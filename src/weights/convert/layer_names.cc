// How the layers of MindSpore name their weights, where those of PyTorch name them otherwise.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "base/message.h"
#include "base/text.h"
#include "weights/convert/convert_plan.h"
#include "weights/role_words.h"
#include "weights/roles.h"

namespace msprobe {
namespace {

struct SplitName {
  std::string module, param;  // module with its dot
};

SplitName SplitAtDot(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot + 1), name.substr(dot + 1)};
}

/// "a.b.norm1." -> "norm1", in small letters.
std::string LastWord(std::string_view module) {
  if (!module.empty()) module.remove_suffix(1);
  const size_t dot = module.rfind('.');
  std::string out(dot == std::string_view::npos ? module : module.substr(dot + 1));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  return out;
}

/// The dimensions of the parameters of each module.
using ModuleParams = std::unordered_map<std::string, std::unordered_map<std::string, size_t>>;

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNormParams{
    {{"weight", "gamma"}, {"bias", "beta"}, {"running_mean", "moving_mean"}, {"running_var", "moving_variance"}}};

class LayerNames {
 public:
  explicit LayerNames(const Checkpoint& from) {
    for (const WeightTensor& t : from.tensors) {
      const SplitName at = SplitAtDot(t.name);
      modules_[at.module][at.param] = t.shape.size();
    }
  }

  /// "" for what MindSpore's layers do not have.
  std::string InMindSpore(const WeightTensor& t, std::vector<int64_t>* shape) const {
    const SplitName at = SplitAtDot(t.name);
    const auto& params = modules_.at(at.module);
    const std::string word = LastWord(at.module);
    const bool batch = params.contains("running_mean") && params.contains("running_var");
    if (batch && at.param == "num_batches_tracked") return {};
    const auto weight = params.find("weight");
    const size_t dims = weight == params.end() ? 0 : weight->second;
    // Only norms have a scale and a shift of one dimension; without a shift (RMSNorm) the scale is "weight" there too.
    const auto bias = params.find("bias");
    if (batch || (dims == 1 && bias != params.end() && bias->second == 1)) {
      for (const auto& [torch, mindspore] : kNormParams) {
        if (at.param == torch) return at.module + std::string(mindspore);
      }
    }
    if (at.param != "weight") return t.name;
    if (dims == 1 && Contains(word, "prelu")) return at.module + "w";
    const std::string what = ParseWeightName(t.name).what;
    const bool table = what == "embed" || what == "positions" || what == "types" || Contains(word, "embed");
    if (table && dims == 2 && bias == params.end()) return at.module + "embedding_table";
    constexpr size_t kConv1d = 3;
    if (dims == kConv1d) shape->insert(shape->begin() + 2, 1);
    return t.name;
  }

  std::string InTorch(const WeightTensor& t) const {
    const SplitName at = SplitAtDot(t.name);
    const auto& params = modules_.at(at.module);
    if (params.contains("gamma") && (params.contains("beta") || params.contains("moving_mean"))) {
      for (const auto& [torch, mindspore] : kNormParams) {
        if (at.param == mindspore) return at.module + std::string(torch);
      }
    }
    const bool table = at.param == "embedding_table" && t.shape.size() == 2;
    const bool slope = at.param == "w" || at.param == "a";  // of PReLU; "a" in older versions
    const bool prelu = slope && t.shape.size() == 1 && Contains(LastWord(at.module), "prelu");
    return table || prelu ? at.module + "weight" : t.name;
  }

 private:
  ModuleParams modules_;
};

/// A convolution over one dimension, if it is not one over two with a kernel of height 1.
bool MayBeConv1d(const WeightTensor& t) {
  constexpr size_t kConv2d = 4;
  return t.shape.size() == kConv2d && t.shape[2] == 1 && t.shape[3] > 1 && t.name.ends_with(".weight");
}

Status PlanByMap(const Checkpoint& from, const MapFile& map, std::unordered_set<size_t>* done, ConvertPlan* plan) {
  std::unordered_map<std::string, RoleTensor> known;
  for (size_t i = 0; i < from.tensors.size(); ++i)
    known.emplace(from.tensors[i].label(), RoleTensor{"", from.tensors[i], false, false, i});
  for (const RoleTensor& part : RolesOf(from)) known.emplace(part.tensor.label(), part);
  for (const auto& [label, name] : map.pairs) {
    const auto found = known.find(label);
    if (found == known.end()) {
      return BadInput(Msg("the map names {}, which {} does not hold: correct the map", OneLine(label), from.path));
    }
    plan->Take(found->second.tensor, name);
    done->insert(found->second.source);
  }
  for (const std::string& label : map.only_a) {
    const auto found = known.find(label);
    if (found == known.end()) continue;
    done->insert(found->second.source);
    plan->left_out.push_back(label);
  }
  return OkStatus();
}

}  // namespace

void ConvertPlan::Take(const WeightTensor& t, std::string name) {
  names.emplace_back(t.label(), name);
  weights.push_back({std::move(name), t.shape, t.dtype, t});
}

Status PlanByLayers(const Checkpoint& from, NamesOf names, const MapFile* map, ConvertPlan* plan) {
  std::unordered_set<size_t> done;
  if (map) MSP_RETURN_IF_ERROR(PlanByMap(from, *map, &done, plan));
  const LayerNames layers(from);
  size_t unclear = 0;
  for (size_t i = 0; i < from.tensors.size(); ++i) {
    const WeightTensor& t = from.tensors[i];
    if (done.contains(i)) continue;
    std::vector<int64_t> shape = t.shape;
    std::string name = t.name;
    if (names == NamesOf::kMindSpore) name = layers.InMindSpore(t, &shape);
    if (names == NamesOf::kTorch) {
      name = layers.InTorch(t);
      if (MayBeConv1d(t)) ++unclear;
    }
    if (name.empty()) {
      plan->left_out.push_back(t.name);
      continue;
    }
    plan->Take(t, name);
    plan->weights.back().shape = std::move(shape);
  }
  if (unclear > 0) {
    plan->notes.push_back(
        Msg("{} weights of convolutions have kernels of height 1, which those of Conv1d have in MindSpore: they keep "
            "their four dimensions; --like takes the shapes of a checkpoint of the PyTorch model",
            unclear));
  }
  return OkStatus();
}

}  // namespace msprobe
