// What a table or a graph shows of one item of an op.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "compare/joined_tensor.h"
#include "compare/stat_value.h"
#include "dump/flatten.h"

namespace msprobe {

enum class CompareMode : uint8_t { kStatistics, kChecksum, kTensor };

/// Stands in the place of a file's name where there is no file.
inline constexpr std::string_view kNoDataName = "-1";

enum Stat : uint8_t { kMax, kMin, kMean, kNorm, kStatCount };

struct ItemView {
  enum class Grad : uint8_t { kNA, kFalse, kTrue };

  ItemState state = ItemState::kInput;
  std::string suffix;      // position in the op: the key that items match by
  std::string name;        // full name of the row
  std::string_view dtype;  // "torch.float32", "<class 'int'>"; "N/A" for null
  std::string shape;       // "[2, 3]"; "N/A" for null
  Grad requires_grad = Grad::kNA;
  std::array<StatValue, kStatCount> stats;
  bool tensor = false;                  // has a dtype of its own
  std::string_view data_name;           // file of the values; "-1" when there is none
  std::string_view p2p_op = "None";     // of an entry of a batch_isend_irecv: "isend"
  std::string p2p_peer = "None";        // and the rank it talks to
  bool joined = false;                  // stands for several items
  std::vector<std::string_view> parts;  // their files
  JoinAxis join = JoinAxis::kFirstOnly;
  std::string checksum;  // CRC-32 or xor; of values the CRC-32 of their text; "N/A" for null

  std::string_view GradText() const;
  bool HasData() const { return data_name != kNoDataName; }
};

/// Describes `item` of the op `op_name`; views point into the item's JSON. `mode` says which fields are needed.
void DescribeItem(std::string_view op_name, Item&& item, CompareMode mode, ItemView* out);

/// Describes all items of an op in table order: inputs, parameters, outputs, gradients of parameters. Entries of `out`
/// are reused; *count is their number.
void DescribeOp(std::string_view op_name, const JsonValue& op, CompareMode mode, std::vector<Item>* scratch,
                std::vector<ItemView>* out, size_t* count);

}  // namespace msprobe
