#include "diagnose/anatomy/op_items.h"

#include "json/parser.h"

namespace msprobe {

std::unique_ptr<OpItems> OpItems::Read(const OpText& op) {
  auto out = std::make_unique<OpItems>();
  if (op.empty() || !ParseJson(op.json, op.name, &out->doc_).ok()) return nullptr;
  out->name_ = op.name;
  size_t count = 0;
  DescribeOp(out->name_, out->doc_, CompareMode::kTensor, &out->scratch_, &out->items_, &count);
  out->items_.resize(count);
  return out;
}

const ItemView* OpItems::Find(std::string_view suffix) const {
  for (const ItemView& item : items_) {
    if (item.suffix == suffix) return &item;
  }
  return nullptr;
}

ItemValues ValuesOf(const TensorFolder& folder, std::string_view data_name, std::string_view dtype, bool hold) {
  ItemValues out;
  const StatusOr<std::string> path = folder.Find(data_name);
  if (!path.ok()) return out;
  StatusOr<TensorFile> file = TensorFile::Open(*path, ParseDType(dtype));
  if (!file.ok() || !file->tensor()) return out;
  out.file = std::make_unique<TensorFile>(std::move(*file));
  out.elements = ElementsOf::Open(*out.file->tensor(), hold);
  return out;
}

}  // namespace msprobe
