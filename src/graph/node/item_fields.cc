#include "graph/node/item_fields.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/name_hash.h"
#include "graph/node/field_text.h"

namespace msprobe {
namespace {

constexpr std::array<std::string_view, kStatCount> kStatKeys{"Max", "Min", "Mean", "Norm"};
constexpr std::array<std::string_view, 5> kP2pKeys{"class_type", "op", "peer", "tag", "group_id"};

bool SameName(const ItemView& a, const ItemView& b) {
  return a.name.size() == b.name.size() && (a.state == ItemState::kOutput) == (b.state == ItemState::kOutput) &&
         a.name == b.name;
}

/// Finds the item of the same name among those in front; one by one while they are few.
class Earlier {
 public:
  explicit Earlier(const std::vector<ItemView>& items) : items_(items) {}

  size_t Find(size_t end, const ItemView& item) {
    constexpr size_t kFew = 64;
    if (end < kFew) {
      size_t i = 0;
      while (i < end && !SameName(items_[i], item)) ++i;
      return i;
    }
    for (; indexed_ < end; ++indexed_) index_.emplace(Hash(items_[indexed_]), indexed_);
    const auto [first, last] = index_.equal_range(Hash(item));
    const auto it = std::find_if(first, last, [&](const auto& known) { return SameName(items_[known.second], item); });
    return it == last ? end : it->second;
  }

 private:
  static size_t Hash(const ItemView& item) { return HashName64(item.name); }

  const std::vector<ItemView>& items_;
  std::unordered_multimap<size_t, size_t> index_;
  size_t indexed_ = 0;
};

/// Fields in the order in which they were first set.
class FieldList {
 public:
  explicit FieldList(std::vector<ItemField>* out) : out_(*out) { out_.clear(); }

  void Set(std::string_view key, const StatValue& v) {
    if (ItemField* field = Find(key)) {
      field->value = v;
    } else {
      out_.push_back({key, v});
    }
  }
  void SetMissing(std::string_view key, const StatValue& v) {
    if (!Find(key)) out_.push_back({key, v});
  }

 private:
  ItemField* Find(std::string_view key) {
    for (ItemField& f : out_) {
      if (f.key.size() == key.size() && f.key == key) return &f;
    }
    return nullptr;
  }

  std::vector<ItemField>& out_;
};

}  // namespace

void DescribeNode(std::string_view node, const JsonValue& op, CompareMode mode, std::vector<Item>* scratch,
                  std::vector<ItemView>* items, size_t* count) {
  size_t described = 0, used = 0;
  DescribeOp(node, op, mode, scratch, items, &described);
  Earlier earlier(*items);
  for (size_t i = 0; i < described; ++i) {
    const size_t at = earlier.Find(used, (*items)[i]);
    if (at != i) std::swap((*items)[at], (*items)[i]);
    if (at == used) ++used;
  }
  *count = used;
}

void ListFields(const ItemView& item, bool checksums, std::vector<ItemField>* out) {
  FieldList fields(out);
  if (item.leaf) {
    for (const auto& m : item.leaf->Members()) {
      const std::string_view key = m.name;
      if (key == "state" || key == "full_op_name" || (key == "md5" && !checksums)) continue;
      fields.Set(key, StatValue::OfField(&m.value));
    }
    fields.Set("data_name", StatValue::Of(item.data_name));
    fields.SetMissing("requires_grad", StatValue::Null());
    for (size_t k = 0; k < kStatCount; ++k) fields.Set(kStatKeys[k], item.stats[k]);
    if (!item.tensor) {
      fields.Set("dtype", StatValue::Of(item.dtype));
      fields.Set("shape", StatValue::Of(std::string_view(item.shape)));
    }
    if (checksums && !item.dumped_sum) fields.Set("md5", StatValue::Of(std::string_view(item.checksum)));
  }
  if (!item.entry || item.entry == item.leaf) return;
  for (const std::string_view key : kP2pKeys) fields.Set(key, StatValue::OfField(item.entry->Find(key)));
}

bool IsShownAsNull(const ItemView& item) {
  const StatValue& v = item.stats[kMax];
  if (v.kind == StatValue::Kind::kNull) return true;
  return v.IsText() && FieldText(v) == "null";
}

}  // namespace msprobe
