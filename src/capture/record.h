// One op as it was seen: a flat list of plain values. No framework object is kept, so that another thread can format
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capture/record_nodes.h"
#include "capture/record_path.h"
#include "capture/save_policy.h"
#include "tensor/kernels/stats.h"

namespace msprobe {

/// How much of a tensor is memory that nobody has written since it was allocated.
enum class Unwritten : uint8_t { kNone, kPart, kWhole };

/// A tensor's line in dump.json.
struct TensorRecord {
  DType dtype = DType::kUnknown;
  uint8_t ndim = 0;
  bool requires_grad = false;
  bool has_stats = false;  // false: the four statistics are null
  bool has_crc = false;
  Unwritten unwritten = Unwritten::kNone;
  bool xor_only = false;  // summary_mode xor: the digest is all there is
  uint32_t crc = 0;
  uint32_t dims = 0;  // first of its dims in Record::dims
  int32_t slot = -1;  // of a value that comes later from a device; the record waits for it
  uint32_t extra_length = 0;
  bool extra_last = false;           // behind all other members
  uint64_t extra = 0;                // in Record::text: members of its own, `"key": value, ...`
  const char* type = nullptr;        // as dumps name the class; null: a plain tensor. Of static storage, as the next.
  const char* dtype_name = nullptr;  // "torch.qint8": where `dtype` is not what the tensor says it has
  uint64_t xor_digest = 0;           // with has_stats
  Stats stats;
  uint32_t file_length = 0;  // 0: no file
  uint64_t file = 0;         // offset of the file's name in Record::text
};

struct TensorCopy;

/// A value whose saving is not decided yet (SaveMode::kDeferred).
struct HeldValue {
  uint32_t node = 0;                 // of the record
  std::shared_ptr<void> object;      // the framework's tensor
  std::shared_ptr<TensorCopy> copy;  // its elements, where the op is about to change them
  bool described = false;            // the framework saves it
};

/// The members of one op's JSON object, in order: keys and values.
struct Record : RecordNodes {
  std::vector<TensorRecord> tensors;
  std::vector<int64_t> dims;
  bool queued = false;           // has its place in the order of the file
  bool done = false;             // nothing more will be added
  bool has_slots = false;        // some tensors have a slot whose value has not come
  bool keep_unfinished = false;  // written at the end of the step even when nobody finished it
  int64_t stack = -1;            // of a record that may be dropped: listed when it is kept
  uint32_t open_index = 0;       // place among the recorder's open records
  SaveMode save = SaveMode::kNone;
  bool copy_held = false;  // kDeferred: what is recorded now is about to change
  std::vector<HeldValue> held;
  RecordPath path;

  void Clear();
  void Null() { Push(RecordNodeType::kNull); }
  void Bool(bool v) { Push(RecordNodeType::kBool).i = v; }
  void Int(int64_t v) { Push(RecordNodeType::kInt).i = v; }
  void Float(double v) { Push(RecordNodeType::kFloat).d = v; }
  void EmptyDict() { Push(RecordNodeType::kEmptyDict); }
  void String(std::string_view s) { PushText(RecordNodeType::kString, s); }
  void Json(std::string_view s) { PushText(RecordNodeType::kJson, s); }
  void Key(std::string_view s) { PushText(RecordNodeType::kKey, s); }
  void KeyLiteral(const char* s) { Push(RecordNodeType::kKeyLiteral).literal = s; }
  void BeginList() { Push(RecordNodeType::kListBegin); }
  void EndList() { Push(RecordNodeType::kListEnd); }
  void BeginDict() { Push(RecordNodeType::kDictBegin); }
  void EndDict() { Push(RecordNodeType::kDictEnd); }
  /// {"type": type, "value": value}; `type` is of static storage.
  void Typed(const char* type, std::string_view value);
  TensorRecord& Tensor();
  /// The file that holds this tensor.
  void SetFile(TensorRecord* tensor, std::string_view file);
  /// Members that follow those every tensor has: JSON text of an object without its braces.
  void Extra(TensorRecord* tensor, std::string_view members);
  /// Behind what is here already the nodes of `other`, from this one on.
  void Append(const Record& other, size_t from = 0);
  /// Position to which Rewind() returns when a value turns out to be unreadable half way.
  size_t Mark() const { return nodes.size(); }
  void Rewind(size_t mark) { nodes.resize(mark); }
  /// Whether each key has its value, and each list and object its end: not where memory was refused within a value.
  bool IsWhole() const;

 private:
  RecordNode& Push(RecordNodeType type);
  void PushText(RecordNodeType type, std::string_view s);
};

}  // namespace msprobe
