// Weights of models built like LLaMA under the names of transformers or MindFormers, whatever they were called.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/message.h"
#include "base/text.h"
#include "weights/convert/convert_plan.h"
#include "weights/roles.h"

namespace msprobe {
namespace {

struct ModelName {
  std::string_view role, transformers, mindformers;
};
constexpr ModelName kModelNames[] = {
#define MSPROBE_MODEL_NAME(role, transformers, mindformers) {role, transformers, mindformers},
#include "weights/convert/model_names.def"
#undef MSPROBE_MODEL_NAME
};

/// "layer 3 attention.q weight" -> "attention.q weight" and 3.
std::string_view TakeLayer(std::string_view role, std::string* layer) {
  constexpr std::string_view kLayer = "layer ";
  if (!role.starts_with(kLayer)) return role;
  role.remove_prefix(kLayer.size());
  const size_t end = role.find(' ');
  *layer = role.substr(0, end);
  return end == std::string_view::npos ? std::string_view() : role.substr(end + 1);
}

Status NotLikeLlama(const Checkpoint& from, const Message& why) {
  return BadInput(Msg("{} is not built like LLaMA ({}): name a checkpoint of the model that is to load it with --like",
                      from.path, why));
}

}  // namespace

Status PlanByRoles(const Checkpoint& from, NamesOf names, ConvertPlan* plan) {
  std::set<std::string> layers, gated;
  size_t padded = 0;
  for (const RoleTensor& part : RolesOf(from)) {
    std::string layer;
    const std::string_view role = TakeLayer(part.role, &layer);
    const auto* found = std::find_if(std::begin(kModelNames), std::end(kModelNames),
                                     [&](const ModelName& name) { return name.role == role; });
    const bool inside = found != std::end(kModelNames) && Contains(found->transformers, "{}");
    if (found == std::end(kModelNames) || inside != !layer.empty())
      return NotLikeLlama(from, Msg("it has {}", OneLine(part.tensor.label().substr(0, 200))));
    if (!layer.empty()) layers.insert(layer);
    if (role == "mlp.gate weight") gated.insert(layer);
    std::string name(names == NamesOf::kMindFormers ? found->mindformers : found->transformers);
    if (inside) name.replace(name.find("{}"), 2, layer);
    WeightTensor t = part.tensor;
    if (part.norm && from.facts.zero_centred.value_or(false)) t.plus = 1;
    if (part.table && from.facts.vocab > 0 && t.shape.size() == 2 && t.shape[0] > from.facts.vocab) {
      t = SelectRanges(t, 0, {{0, from.facts.vocab}}, "");
      ++padded;
    }
    plan->Take(t, name);
  }
  if (layers.empty() || gated != layers) return NotLikeLlama(from, Msg("its layers have no gate"));
  if (padded > 0) plan->notes.push_back(Msg("the rows behind word {} are left out", from.facts.vocab));
  if (from.facts.zero_centred.value_or(false))
    plan->notes.emplace_back(Msg("1 is added to the norms, which are centred on zero (layernorm_1p)"));
  return OkStatus();
}

}  // namespace msprobe
