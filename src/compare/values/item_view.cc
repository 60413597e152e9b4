#include "compare/values/item_view.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/stats.h"

namespace msprobe {
namespace {

constexpr const char* kStatKeys[kStatCount] = {"Max", "Min", "Mean", "Norm"};

/// The fields of an item that rows show, found in one pass over its members.
struct Fields {
  const JsonValue* type = nullptr;
  const JsonValue* dtype = nullptr;
  const JsonValue* shape = nullptr;
  const JsonValue* requires_grad = nullptr;
  const JsonValue* stats[kStatCount] = {};
  const JsonValue* md5 = nullptr;
  const JsonValue* data_name = nullptr;
  const JsonValue* value = nullptr;
  const JsonValue* group_ranks = nullptr;
  const JsonValue* unwritten = nullptr;
  const JsonValue* partly_unwritten = nullptr;
};

Fields FieldsOf(const JsonValue& leaf) {
  Fields f;
  for (const auto& member : leaf.Members()) {
    const std::string_view key = member.name;
    const JsonValue* v = &member.value;
    switch (key.empty() ? 0 : key[0]) {
      case 'M':
        for (int k = kMax; k <= kMean; ++k) {
          if (key == kStatKeys[k]) f.stats[k] = v;
        }
        break;
      case 'N':
        if (key == "Norm") f.stats[kNorm] = v;
        break;
      case 't':
        if (key == "type") f.type = v;
        break;
      case 'd':
        if (key == "dtype") f.dtype = v;
        if (key == "data_name") f.data_name = v;
        break;
      case 's':
        if (key == "shape") f.shape = v;
        break;
      case 'r':
        if (key == "requires_grad") f.requires_grad = v;
        break;
      case 'm':
        if (key == "md5") f.md5 = v;
        break;
      case 'v':
        if (key == "value") f.value = v;
        break;
      case 'g':
        if (key == "group_ranks") f.group_ranks = v;
        break;
      case 'p':
        if (key == "partly_unwritten") f.partly_unwritten = v;
        break;
      case 'u':
        if (key == "unwritten") f.unwritten = v;
        break;
      default: break;
    }
  }
  return f;
}

std::string_view PyClass(const JsonValue* v) {
  if (!v || v->IsNull()) return "<class 'NoneType'>";
  if (v->IsString()) return "<class 'str'>";
  if (v->IsBool()) return "<class 'bool'>";
  if (v->IsArray()) return "<class 'list'>";
  if (v->IsObject()) return "<class 'dict'>";
  return v->IsInt() || v->IsUInt() ? "<class 'int'>" : "<class 'float'>";
}

void SetAll(ItemView* out, const StatValue& v) {
  for (StatValue& stat : out->stats) stat = v;
}

/// shape = text of `v`
void SetShape(ItemView* out, const JsonValue* v) {
  out->shape.clear();
  if (!v || v->IsNull()) {
    out->shape = kNotAvailableText;
  } else {
    AppendPyValue(&out->shape, *v);
  }
}

/// Numbers of the ranks that a call talks to.
bool IsPeerArgument(std::string_view suffix) {
  const size_t dot = suffix.rfind('.');
  const std::string_view key = dot == std::string_view::npos ? suffix : suffix.substr(dot + 1);
  return key == "src" || key == "dst" || key == "group_src" || key == "group_dst";
}

void SetTensor(const Fields& f, ItemView* out) {
  out->dtype = f.dtype->Text();
  SetShape(out, f.shape);
  for (int k = kMax; k < kStatCount; ++k) out->stats[static_cast<size_t>(k)] = StatValue::OfField(f.stats[k]);
}

/// What stands for the checksum of an item that has none: the checksum of the text of `of`, or, for ranks, that text.
struct TextSum {
  const JsonValue* of = nullptr;
  bool plain = false;
};

/// Items without a dtype: arguments that are not tensors.
TextSum SetValue(const Fields& f, ItemView* out) {
  const std::string_view type = f.type && f.type->IsString() ? f.type->Text() : std::string_view();
  out->shape = "[]";
  out->dtype = type;
  if (type == "torch.Size" || type == "slice") {
    SetAll(out, StatValue::Null());
    if (type == "torch.Size") {
      SetShape(out, f.value);
    } else {
      out->shape = '(';
      AppendInt(out->shape, f.value && f.value->IsArray() ? f.value->size() : 0);
      out->shape += ",)";
    }
  } else if (type == "ellipsis") {
    SetAll(out, StatValue::AsText(f.value));
  } else if (IsPeerArgument(out->suffix)) {
    SetAll(out, StatValue::AsText(f.value));
    return {f.value, true};
  } else if (type == "torch.ProcessGroup") {
    SetAll(out, StatValue::AsText(f.group_ranks));
    return {f.group_ranks, true};
  } else {
    out->dtype = PyClass(f.value);
    SetAll(out, f.value ? StatValue::Of(*f.value) : StatValue::Null());
  }
  return {f.value};
}

/// The checksum that stands in the dump, else `sum`.
void SetChecksum(const Fields& f, const TextSum& sum, ItemView* out) {
  if (f.md5 && !f.md5->Text().empty()) {
    out->checksum = f.md5->Text();
    return;
  }
  // The xor checksum of a 0-dim tensor is the element itself.
  if (f.md5 && f.md5->IsNumber() && f.md5->Number() != 0) {
    out->checksum.clear();
    return AppendPyValue(&out->checksum, *f.md5);
  }
  std::string text;
  if (sum.of) AppendPyValue(&text, *sum.of);
  if (sum.plain) {
    out->checksum = sum.of ? text : "None";
    return;
  }
  const uint32_t crc = Crc32(text.data(), text.size());
  out->checksum.clear();
  for (int shift = 28; shift >= 0; shift -= 4) out->checksum += "0123456789abcdef"[(crc >> shift) & 15];
}

/// Whom an entry of a batch_isend_irecv talks to.
void SetPeer(const JsonValue& entry, ItemView* out) {
  if (const JsonValue* op = entry.Find("op"); op && op->IsString()) out->p2p_op = op->Text();
  out->p2p_peer.clear();
  if (const JsonValue* peer = entry.Find("peer")) AppendPyValue(&out->p2p_peer, *peer);
}

void SetNull(ItemView* out) {
  out->dtype = kNotAvailableText;
  out->shape = kNotAvailableText;
  out->requires_grad = ItemView::Grad::kNA;
  SetAll(out, StatValue::Null());
  out->checksum = kNotAvailableText;
}

}  // namespace

std::string_view ItemView::GradText() const {
  return requires_grad == Grad::kNA ? kNotAvailableText : requires_grad == Grad::kTrue ? "True" : "False";
}

std::string_view ItemView::Buffer() const {
  const JsonValue* name_of = leaf ? leaf->Find("buffer") : nullptr;
  return name_of && name_of->IsString() ? name_of->Text() : std::string_view();
}

bool ItemView::IsProcessGroup() const {
  const JsonValue* type = leaf ? leaf->Find("type") : nullptr;
  return type && type->IsString() && type->Text() == "torch.ProcessGroup";
}

double ElementsOfShape(std::string_view shape) {
  double out = 1, n = 0;
  bool digits = false;
  for (const char c : shape) {
    if (c >= '0' && c <= '9') {
      n = n * 10 + (c - '0');
      digits = true;
    } else if (digits) {
      out *= n;
      n = 0;
      digits = false;
    }
  }
  return out;
}

double Amplitude(const ItemView& item) {
  double out = 0;
  for (const Stat stat : {kMax, kMin}) {
    if (item.stats[stat].IsNumber()) out = std::max(out, std::fabs(item.stats[stat].AsDouble()));
  }
  return out;
}

void DescribeItem(std::string_view op_name, Item&& item, CompareMode mode, ItemView* out) {
  out->state = item.state;
  out->suffix.swap(item.suffix);
  out->name.assign(op_name);
  out->name += out->suffix;
  out->tensor = out->unwritten = out->partly_unwritten = out->other_part = out->joined = false;
  out->parts.clear();
  out->data_name = kNoDataName;
  const JsonValue* leaf = item.leaf;
  out->entry = leaf;
  out->leaf = out->dims = out->dumped_sum = nullptr;
  // A P2POp of batch_isend_irecv wraps the tensor that it sends.
  out->p2p_op = "None";
  if (const JsonValue* kind = leaf->Find("class_type"); kind && !leaf->Find("type")) {
    SetPeer(*leaf, out);
    leaf = leaf->Find("tensor");
  }
  if (!leaf || !leaf->IsObject()) return SetNull(out);
  const Fields f = FieldsOf(*leaf);
  out->leaf = leaf;
  const auto is_true = [](const JsonValue* v) { return v && v->IsBool() && v->Bool(); };
  out->unwritten = is_true(f.unwritten);
  out->partly_unwritten = is_true(f.partly_unwritten);
  const bool no_sum = !f.md5 || f.md5->IsNull() || (f.md5->IsString() && f.md5->empty());
  out->dumped_sum = no_sum ? nullptr : f.md5;
  if (f.data_name && !f.data_name->Text().empty()) {
    out->data_name = f.data_name->Text();
    if (out->HasData()) out->name = out->data_name.substr(0, out->data_name.rfind('.'));
  }
  out->requires_grad = !f.requires_grad || !f.requires_grad->IsBool() ? ItemView::Grad::kNA
                       : f.requires_grad->Bool()                      ? ItemView::Grad::kTrue
                                                                      : ItemView::Grad::kFalse;
  TextSum sum{f.value};
  if (f.dtype && !f.dtype->Text().empty()) {
    out->tensor = true;
    out->dims = f.shape;
    SetTensor(f, out);
  } else {
    sum = SetValue(f, out);
  }
  if (mode == CompareMode::kChecksum) SetChecksum(f, sum, out);
}

void DescribeOp(std::string_view op_name, const JsonValue& op, CompareMode mode, std::vector<Item>* scratch,
                std::vector<ItemView>* out, size_t* count) {
  scratch->clear();
  FlattenOp(op_name, op, scratch);
  *count = scratch->size();
  if (out->size() < *count) out->resize(*count);
  size_t next = 0;
  for (int order = 0; order < 4; ++order) {
    for (Item& item : *scratch) {
      if (KindOrder(item.state) == order) DescribeItem(op_name, std::move(item), mode, &(*out)[next++]);
    }
  }
}

}  // namespace msprobe
