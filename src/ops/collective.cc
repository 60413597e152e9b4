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

struct CommPrimitive {
  std::string_view name, api;
};

constexpr CommPrimitive kPrimitives[] = {
#define COMM_PRIMITIVE(name, api) {#name, #api},
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

std::string_view CommFunction(std::string_view op_name) {
  if (StartsWith(op_name, "Distributed.") || StartsWith(op_name, "MintDistributed.") ||
      StartsWith(op_name, "communication.comm_func.")) {
    const std::string_view base = ParseOpName(op_name).base;
    return base.substr(base.rfind('.') + 1);
  }
  if (!StartsWith(op_name, "Primitive.")) return {};
  const std::string_view base = ParseOpName(op_name).base, name = base.substr(base.rfind('.') + 1);
  const auto it = std::find_if(std::begin(kPrimitives), std::end(kPrimitives),
                               [&](const CommPrimitive& primitive) { return primitive.name == name; });
  return it == std::end(kPrimitives) ? std::string_view() : it->api;
}

bool IsCommunication(std::string_view op_name) { return !CommFunction(op_name).empty(); }

std::string_view CommApi(std::string_view op_name) {
  const std::string_view api = CommFunction(op_name);
  if (api.empty() || ParseOpName(op_name).direction != OpDirection::kForward) return {};
  return FlowOf(api) == CommFlow::kNone ? std::string_view() : api;
}

bool IsTransfer(std::string_view op_name) {
  if (!IsCommunication(op_name)) return false;
  const CommFlow flow = FlowOf(WithoutRankSuffix(ApiOf(op_name)));
  return flow == CommFlow::kSend || flow == CommFlow::kReceive || flow == CommFlow::kBatch;
}

}  // namespace msprobe
