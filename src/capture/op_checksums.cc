#include "capture/op_checksums.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/text.h"
#include "dump/flatten.h"
#include "json/parser.h"

namespace msprobe {
namespace {

uint32_t Hash32(uint64_t h) { return static_cast<uint32_t>(h ^ (h >> 32)); }

uint64_t Mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

uint32_t ShapeHash(const JsonValue& leaf) {
  uint64_t h = 0;
  const JsonValue* shape = leaf.Find("shape");
  if (shape == nullptr || !shape->IsArray()) return 0;
  for (const JsonValue& n : shape->Items()) h = Mix(h, n.IsInt() ? static_cast<uint64_t>(n.Int()) : 0);
  return Hash32(Mix(h, shape->size()));
}

bool ParseCrc(const JsonValue& leaf, uint32_t* crc) {
  const JsonValue* md5 = leaf.IsObject() ? leaf.Find("md5") : nullptr;
  if (md5 == nullptr || !md5->IsString()) return false;
  const std::string_view text = md5->Text();
  const auto r = std::from_chars(text.data(), text.data() + text.size(), *crc, 16);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

std::vector<TensorSum>* ListOf(ItemState state, OpChecksums* sums) {
  switch (state) {
    case ItemState::kInput:
    case ItemState::kKwarg: return &sums->inputs;
    case ItemState::kOutput:
    case ItemState::kParameterGrad: return &sums->outputs;
    default: return nullptr;
  }
}

// Walks the nodes of a record and keeps the position of each value as FlattenOp() would name it.
class RecordWalk {
 public:
  RecordWalk(const Record& record, OpChecksums* sums) : r_(record), sums_(sums) {
    grads_ = record.name.form == NameForm::kParamGrad;
  }

  void Run() {
    for (size_t i = 0; i < r_.nodes.size(); ++i) {
      const RecordNode& n = r_.nodes[i];
      switch (n.type) {
        case RecordNodeType::kTyped:  // its text is a node of its own
          Step();
          ++i;
          break;
        case RecordNodeType::kKey: Key(std::string_view(r_.text).substr(n.offset, n.length)); break;
        case RecordNodeType::kKeyLiteral: Key(n.literal); break;
        case RecordNodeType::kListBegin:
        case RecordNodeType::kDictBegin: Begin(n.type == RecordNodeType::kListBegin); break;
        case RecordNodeType::kListEnd:
        case RecordNodeType::kDictEnd: End(); break;
        case RecordNodeType::kTensor: Tensor(r_.tensors[static_cast<size_t>(n.i)]); break;
        case RecordNodeType::kJson: Json(std::string_view(r_.text).substr(n.offset, n.length)); break;
        default: Step(); break;
      }
    }
  }

 private:
  struct Level {
    bool list = false;
    int64_t index = 0;
    size_t length = 0;  // of the path outside it
  };

  void Key(std::string_view key) {
    if (!levels_.empty()) {
      path_.resize(levels_.back().length);
      path_.append(".").append(key);
      return;
    }
    list_ = nullptr;
    path_.clear();
    if (grads_) {
      list_ = &sums_->outputs;
      path_.append(".").append(key);
    } else if (key == "input_args" || key == "input_kwargs" || key == "input") {
      list_ = &sums_->inputs;
      path_.assign(".input");
    } else if (key == "output") {
      list_ = &sums_->outputs;
      path_.assign(".output");
    }
  }

  // The next value of a list has the next index; that of a parameter's gradient is not part of its name.
  void Step() {
    if (levels_.empty() || !levels_.back().list) return;
    Level& level = levels_.back();
    path_.resize(level.length);
    if (grads_) return;
    path_ += '.';
    AppendInt(path_, level.index++);
  }

  void Begin(bool list) {
    Step();
    levels_.push_back({list, 0, path_.size()});
  }
  void End() {
    if (levels_.empty()) return;
    path_.resize(levels_.back().length);
    levels_.pop_back();
  }

  void Add(std::string_view suffix, uint32_t shape, uint32_t crc) {
    const size_t length = path_.size();
    path_.append(suffix);
    list_->push_back({Hash32(HashText(path_)), shape, crc});
    path_.resize(length);
  }

  void Tensor(const TensorRecord& t) {
    Step();
    if (list_ == nullptr || !t.has_crc) return;
    uint64_t h = 0;
    for (int d = 0; d < t.ndim; ++d) h = Mix(h, static_cast<uint64_t>(r_.dims[t.dims + static_cast<size_t>(d)]));
    Add({}, Hash32(Mix(h, t.ndim)), t.crc);
  }

  void Json(std::string_view text) {
    Step();
    if (list_ == nullptr || !Contains(text, "\"md5\"") || !ParseJson(text, "a value", &doc_).ok()) return;
    uint32_t crc = 0;
    if (ParseCrc(doc_, &crc)) Add({}, ShapeHash(doc_), crc);
  }

  const Record& r_;
  OpChecksums* sums_;
  bool grads_ = false;
  std::vector<TensorSum>* list_ = nullptr;
  std::string path_;
  std::vector<Level> levels_;
  JsonDoc doc_;
};

const TensorSum* At(const std::vector<TensorSum>& sums, uint32_t place) {
  const auto it = std::find_if(sums.begin(), sums.end(), [&](const TensorSum& s) { return s.place == place; });
  return it == sums.end() ? nullptr : &*it;
}

}  // namespace

uint64_t HashText(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return Mix(h, text.size());
}

void SumsOf(const Record& record, OpChecksums* sums) {
  sums->Clear();
  RecordWalk(record, sums).Run();
}

void SumsOf(std::string_view op_name, const JsonValue& op, OpChecksums* sums) {
  sums->Clear();
  std::vector<Item> items;
  FlattenOp(op_name, op, &items);
  for (const Item& item : items) {
    std::vector<TensorSum>* list = ListOf(item.state, sums);
    uint32_t crc = 0;
    if (list != nullptr && ParseCrc(*item.leaf, &crc)) {
      list->push_back({Hash32(HashText(item.suffix)), ShapeHash(*item.leaf), crc});
    }
  }
}

bool OnlyOutputsDiffer(const OpChecksums& here, std::span<const TensorSum> golden_inputs,
                       std::span<const TensorSum> golden_outputs) {
  if (here.inputs.size() != golden_inputs.size()) return false;
  for (const TensorSum& golden : golden_inputs) {
    const TensorSum* own = At(here.inputs, golden.place);
    if (own == nullptr || *own != golden) return false;
  }
  return std::any_of(golden_outputs.begin(), golden_outputs.end(), [&](const TensorSum& golden) {
    const TensorSum* own = At(here.outputs, golden.place);
    return own != nullptr && *own != golden;
  });
}

}  // namespace msprobe
