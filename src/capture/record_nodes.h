// The values of an op as a flat list: what a record has beside its tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/op_name.h"

namespace msprobe {

enum class RecordNodeType : uint8_t {
  kNull,
  kBool,        // i
  kInt,         // i
  kFloat,       // d
  kString,      // text
  kTyped,       // {"type": literal, "value": text}
  kEmptyDict,   // {}
  kJson,        // text: JSON of json.dumps(indent=1), to be indented
  kTensor,      // i: index into tensors
  kKey,         // text: key of the next value
  kKeyLiteral,  // literal: key of the next value
  kListBegin,
  kListEnd,
  kDictBegin,
  kDictEnd,
};

struct RecordNode {
  RecordNodeType type = RecordNodeType::kNull;
  uint32_t length = 0;  // of the text
  union {
    int64_t i;
    double d;
    const char* literal;  // static storage
    uint64_t offset;      // of the text in Record::text
  };
};

struct RecordNodes {
  OpName name;
  std::vector<RecordNode> nodes;
  std::string text;   // of the nodes and tensors
  bool bare = false;  // one value, not members of an object
};

}  // namespace msprobe
