#include "view/query/tensor_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "json/writer.h"
#include "view/query/query_context.h"
#include "view/query/tensor_view.h"

namespace msprobe::view {
namespace {

constexpr int kCellDigits = 5;                         // a picture tells no more
constexpr int64_t kSlicedElements = int64_t{1} << 22;  // each slice goes through all of them
constexpr int64_t kMostSlices = 256;

std::string_view ValueOf(const ViewRow& row, std::string_view key) {
  for (const auto& [name, value] : row.values) {
    if (name == key) return value;
  }
  return {};
}

bool IsSaved(const ViewRow& row) {
  const std::string_view name = ValueOf(row, "data_name");
  return !name.empty() && name != "-1" && name != "null";
}

// "input.0" of "Functional.linear.0.forward.input.0".
std::string_view ItemOf(const ViewRow& row, std::string_view node) {
  const std::string_view name = row.name;
  return name.size() > node.size() && name.starts_with(node) && name[node.size()] == '.' ? name.substr(node.size() + 1)
                                                                                         : name;
}

std::string_view GroupOf(std::string_view item) { return item.substr(0, item.find('.')); }

// As the page pairs them (web/src/model/table.ts): by the names of items, and what is left by position in its group.
std::vector<const ViewRow*> Partners(const std::vector<ViewRow>& rows, std::string_view node,
                                     const std::vector<ViewRow>& partner_rows, std::string_view other) {
  std::vector<const ViewRow*> out(rows.size(), nullptr);
  std::set<const ViewRow*> taken;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const ViewRow& row : partner_rows) {
      if (ItemOf(row, other) == ItemOf(rows[i], node) && taken.insert(&row).second) {
        out[i] = &row;
        break;
      }
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const ViewRow& row : partner_rows) {
      if (out[i] || GroupOf(ItemOf(row, other)) != GroupOf(ItemOf(rows[i], node))) continue;
      if (taken.insert(&row).second) out[i] = &row;
    }
  }
  return out;
}

// Index over the leading dimensions of the slice that holds an element.
int64_t SliceOf(const std::vector<int64_t>& place, const std::vector<int64_t>& shape) {
  int64_t out = 0;
  for (size_t i = 0; i + 2 < shape.size(); ++i) out = out * shape[i] + place[i];
  return out;
}

}  // namespace

bool HasTensor(const NodeRecord& record) {
  return std::any_of(record.inputs.begin(), record.inputs.end(), IsSaved) ||
         std::any_of(record.outputs.begin(), record.outputs.end(), IsSaved);
}

TensorExport::TensorExport(const GraphAddress& key, const QueryContext& held, uint64_t budget)
    : key_(key), held_(held), budget_(budget) {
  target_.BeginObject();
  golden_.BeginObject();
}

void TensorExport::Write(JsonWriter* json) {
  target_.EndObject();
  golden_.EndObject();
  json->BeginObject();
  json->RawMember("NPU", target_.Take());
  json->RawMember("Bench", golden_.Take());
  json->EndObject();
}

Status TensorExport::Add(bool target, uint32_t node) {
  const Side side = target ? Side::kTarget : Side::kGolden;
  const Tree &tree = held_.tree(side), &other = held_.other(side);
  const uint32_t partner = target ? tree[node].partner : kNoNode;
  MSP_ASSIGN_OR_RETURN(const NodeRecord own_record, held_.file->LoadRecord(tree[node].rowid));
  NodeRecord partner_record;
  std::string their_name;
  if (partner != kNoNode) {
    MSP_ASSIGN_OR_RETURN(partner_record, held_.file->LoadRecord(other[partner].rowid));
    their_name = other.Name(partner);
  }
  const std::string name(tree.Name(node));
  std::string items;
  JsonWriter json(&items, kJsonPage);
  for (const auto& [rows, partners] : {std::pair(&own_record.inputs, &partner_record.inputs),
                                       std::pair(&own_record.outputs, &partner_record.outputs)}) {
    const std::vector<const ViewRow*> found = Partners(*rows, name, *partners, their_name);
    for (size_t i = 0; i < rows->size(); ++i) {
      if (!IsSaved((*rows)[i])) continue;
      ++count_.saved;
      if (used_ + items.size() >= budget_) continue;
      const ViewRow* row = found[i] && IsSaved(*found[i]) ? found[i] : nullptr;
      MSP_RETURN_IF_ERROR(AddItem(target, node, (*rows)[i], row, &json));
    }
  }
  if (items.empty()) return OkStatus();
  JsonWriter& out = target ? target_ : golden_;
  const size_t before = out.size();
  out.ObjectMember(std::to_string(node), [&] { out.Members(items); });
  used_ += out.size() - before;
  return OkStatus();
}

// A tensor that cannot be read is left out and counted: the page is of use without it.
Status TensorExport::AddItem(bool target, uint32_t node, const ViewRow& row, const ViewRow* partner, JsonWriter* out) {
  const auto leave = [&](const Status& status) {
    if (status.code() == Code::kInterrupted) return status;
    if (count_.unread++ == 0) count_.problem = status.message();
    return OkStatus();
  };
  const auto own_file = FileOf(target, node, row);
  if (!own_file.ok()) return leave(own_file.status());
  File partner_file;
  if (partner) {
    const uint32_t other = held_.tree(target ? Side::kTarget : Side::kGolden)[node].partner;
    auto found = FileOf(!target, other, *partner);
    if (found.ok()) partner_file = *std::move(found);
    partner_file.name = ValueOf(*partner, "data_name");
  }
  const auto slices = Slices(*own_file, partner_file);
  if (!slices.ok()) return leave(slices.status());
  out->ObjectMember(row.name, [&] { out->Members(*slices); });
  ++count_.held;
  return OkStatus();
}

StatusOr<TensorExport::File> TensorExport::FileOf(bool target, uint32_t node, const ViewRow& row) const {
  const ServedTree tree(held_.meter->root());
  const int64_t rowid = held_.tree(target ? Side::kTarget : Side::kGolden)[node].rowid;
  MSP_ASSIGN_OR_RETURN(const std::string directory, TensorDirectory(*held_.file, key_.step, key_.rank, target, rowid));
  File out;
  out.name = ValueOf(row, "data_name");
  out.dtype = ValueOf(row, "dtype");
  MSP_ASSIGN_OR_RETURN(out.path, TensorPath(tree, directory, out.name));
  FileStamp stamp;
  if (ReadStamp(out.path, &stamp) && stamp.size > kMostExportedTensor) {
    return BadInput(
        fmt::format("{} takes more than {} MB: look at it with msprobe serve", out.name, kMostExportedTensor >> 20));
  }
  return out;
}

// `"0":PREVIEW,..`: the first slice, that of the worst element, and the others as long as they are small.
StatusOr<std::string> TensorExport::Slices(const File& own, const File& partner) const {
  const ServedTree tree(held_.meter->root());
  std::string out;
  JsonWriter members(&out, kJsonPage);
  std::vector<int64_t> wanted = {0};
  for (size_t i = 0; i < wanted.size(); ++i) {
    MSP_ASSIGN_OR_RETURN(TensorDetail detail,
                         LoadPreview(tree, own.path, partner.path, own.dtype, partner.dtype, wanted[i]));
    // Where they lay is nobody's business who gets the page.
    detail.target.file = own.name;
    if (detail.golden) {
      detail.golden->file = partner.name;
    } else if (!partner.name.empty()) {
      detail.missing = partner.name + " could not be read when this page was written";
    }
    if (i == 0) {
      const int64_t slices = detail.preview.target.slices;
      const int64_t worst = detail.worst.empty() ? 0 : SliceOf(detail.worst[0].place, detail.target.shape);
      if (worst > 0 && worst < slices) wanted.push_back(worst);
      const bool more = detail.preview.target.count <= kSlicedElements;
      for (int64_t s = 1; more && s < std::min(slices, kMostSlices); ++s) {
        if (s != worst) wanted.push_back(s);
      }
    }
    const std::string json = ToJson(detail, kCellDigits);
    if (i > 1 && out.size() + json.size() > kMostExportedSlices) break;
    members.RawMember(std::to_string(wanted[i]), json);
  }
  return out;
}

}  // namespace msprobe::view
