#include "graph/comm/comm_data.h"

#include "base/text.h"
#include "dump/group_name.h"
#include "graph/tree/node_graph.h"
#include "ops/collective.h"

namespace msprobe {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 60;

const JsonValue* ArgumentsOf(const JsonValue& op) {
  for (const char* key : {"input_args", "input"}) {
    const JsonValue* v = op.Find(key);
    if (v && v->IsArray()) return v;
  }
  return nullptr;
}

std::string_view TextOf(const JsonValue& v, std::string_view key) {
  const JsonValue* member = v.Find(key);
  return member && member->IsString() ? member->Text() : std::string_view();
}

bool IsTensor(const JsonValue& v) { return !TextOf(v, "dtype").empty() && v.Find("shape") != nullptr; }

void Fill(const JsonValue& tensor, CommData* data) {
  data->dtype = TextOf(tensor, "dtype");
  const JsonValue* shape = tensor.Find("shape");
  if (!shape || !shape->IsArray()) return;
  int64_t elements = 1;
  std::string text = "[";
  for (const JsonValue& d : shape->Items()) {
    if (!d.IsInt() || d.Int() < 0) return;
    if (d.Int() > 0 && elements > kMostElements / d.Int()) return;
    elements *= d.Int();
    if (text.size() > 1) text += ", ";
    text += std::to_string(d.Int());
  }
  data->shape = text + "]";
  data->elements = elements;
}

/// The tensor at position `i` of the arguments, or under one of the names; buffers that a call will fill are null in
/// dumps.
const JsonValue* TensorAt(const JsonValue& op, unsigned i, std::initializer_list<std::string_view> names) {
  const JsonValue* kwargs = op.Find("input_kwargs");
  for (const std::string_view name : names) {
    const JsonValue* v = kwargs ? kwargs->Find(name) : nullptr;
    if (v && IsTensor(*v)) return v;
  }
  const JsonValue* args = ArgumentsOf(op);
  return args && i < args->size() && IsTensor((*args)[i]) ? &(*args)[i] : nullptr;
}

const JsonValue* FirstOutput(const JsonValue& op) {
  const JsonValue* output = op.Find("output");
  return output && output->IsArray() && !output->empty() && IsTensor((*output)[0]) ? &(*output)[0] : nullptr;
}

/// The reduction that is named, or an object at a position.
std::string Reduction(const JsonValue& op) {
  const JsonValue* kwargs = op.Find("input_kwargs");
  const auto text = [](const JsonValue& v) {
    const std::string_view value = TextOf(v, "value");
    if (TextOf(v, "type") == "str") return std::string(IsReductionText(value) ? value : std::string_view());
    if (!Contains(TextOf(v, "type"), "ReduceOp") && !Contains(TextOf(v, "type"), "RedOpType")) return std::string();
    return std::string(TextOf(v, "value"));
  };
  if (const JsonValue* v = kwargs ? kwargs->Find("op") : nullptr) return text(*v);
  if (const JsonValue* v = AttributeOf(op, "op")) return text(*v);
  if (const JsonValue* args = ArgumentsOf(op)) {
    for (const JsonValue& v : args->Items()) {
      if (std::string found = text(v); !found.empty()) return found;
    }
  }
  return {};
}

CommData DataOf(std::string_view api, const JsonValue& op) {
  CommData data;
  const JsonValue* tensor = nullptr;
  bool sizes = true;
  if (Contains(api, "object") || Contains(api, "barrier") || Contains(api, "coalesced")) return data;
  if (Contains(api, "recv")) {
    tensor = FirstOutput(op);
    if (!tensor) tensor = TensorAt(op, 0, {"tensor"});
  } else if (Contains(api, "all_to_all")) {
    tensor = TensorAt(op, 1, {"input"});
    sizes = false;  // each pair of ranks agrees on its own
  } else if (Contains(api, "all_gather") || Contains(api, "allgather")) {
    tensor = TensorAt(op, 1, {"tensor", "input_tensor"});
    sizes = api != "all_gather";  // lists may hold tensors of several sizes
  } else if (Contains(api, "reduce_scatter")) {
    tensor = TensorAt(op, 1, {"input", "input_tensor"});
  } else if (api == "scatter") {
    tensor = FirstOutput(op);
  } else {
    tensor = TensorAt(op, 0, {"tensor", "input"});
    sizes = api != "gather";
  }
  // MindSpore's functions that return their result have no buffer in front.
  if (!tensor && !Contains(api, "recv")) tensor = TensorAt(op, 0, {});
  if (tensor) Fill(*tensor, &data);
  if (!sizes) data.elements = -1;
  if (Contains(api, "reduce")) data.reduction = Reduction(op);
  return data;
}

/// In the order in which ReadTransfers lists the exchanges of a batch.
void BatchData(const JsonValue& list, std::vector<CommData>* data) {
  if (!list.IsArray()) return;
  for (const JsonValue& entry : list.Items()) {
    if (entry.IsArray()) {
      BatchData(entry, data);
      continue;
    }
    const std::string_view op = TextOf(entry, "op");
    const JsonValue* peer = entry.Find("peer");
    if (!(Contains(op, "send") || Contains(op, "recv")) || !peer || !peer->IsInt32() || peer->Int32() < 0) continue;
    CommData& d = data->emplace_back();
    const JsonValue* tensor = entry.Find("tensor");
    if (tensor && IsTensor(*tensor)) Fill(*tensor, &d);
  }
}

}  // namespace

bool IsBarrier(std::string_view op_name) {
  return IsCommunication(op_name) && EndsWith(op_name, ".forward") && Contains(CommFunction(op_name), "barrier");
}

void ReadExchanges(std::string_view op_name, const JsonValue& op, int own_rank, std::vector<CommTransfer>* transfers,
                   std::vector<CommData>* data) {
  transfers->clear();
  data->clear();
  if (IsBarrier(op_name)) {
    CommTransfer t;
    t.gives = t.takes = true;
    ReadGroup(op, &t);
    transfers->push_back(std::move(t));
    data->emplace_back();
    return;
  }
  const std::string_view api = CommApi(op_name);
  if (api.empty()) return;
  *transfers = ReadTransfers(api, op, own_rank);
  if (Contains(api, "batch_isend_irecv")) {
    if (const JsonValue* args = ArgumentsOf(op)) BatchData(*args, data);
    const JsonValue* kwargs = op.Find("input_kwargs");
    if (data->empty() && kwargs && kwargs->IsObject()) {
      for (const auto& m : kwargs->Members()) BatchData(m.value, data);
    }
    data->resize(transfers->size());
    return;
  }
  data->assign(transfers->size(), transfers->empty() ? CommData() : DataOf(api, op));
}

}  // namespace msprobe
