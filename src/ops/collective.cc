#include "ops/collective.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using namespace op_trait;

constexpr Collective kCollectives[] = {
#define COLLECTIVE(api, flow, position, keyword, traits) {#api, CommFlow::flow, position, keyword, traits},
#include "ops/op_traits.def"
};

}  // namespace

const Collective* FindCollective(std::string_view api) {
  const auto it =
      std::find_if(std::begin(kCollectives), std::end(kCollectives), [&](const Collective& c) { return c.api == api; });
  return it == std::end(kCollectives) ? nullptr : it;
}

bool ComparesOutputsOnly(std::string_view api) {
  const Collective* known = FindCollective(api);
  return known && known->Has(kInputsIgnored);
}

CommFlow FlowOf(std::string_view api) {
  if (const Collective* known = FindCollective(api)) return known->flow;
  for (const Collective& c : kCollectives) {
    if (Contains(api, c.api)) return c.flow;
  }
  return CommFlow::kNone;
}

bool IsCommunication(std::string_view op_name) {
  return StartsWith(op_name, "Distributed.") || StartsWith(op_name, "MintDistributed.") ||
         StartsWith(op_name, "communication.comm_func.");
}

std::string_view CommApi(std::string_view op_name) {
  if (!IsCommunication(op_name)) return {};
  const NameParts name = ParseOpName(op_name);
  if (name.direction != OpDirection::kForward) return {};
  const std::string_view api = name.base.substr(name.base.rfind('.') + 1);
  return FlowOf(api) == CommFlow::kNone ? std::string_view() : api;
}

}  // namespace msprobe
