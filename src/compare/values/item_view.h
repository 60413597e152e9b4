// What a table or a graph shows of one item of an op.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "compare/values/stat_value.h"
#include "dump/flatten.h"

namespace msprobe {

/// kStructure: names and hierarchy only.
enum class CompareMode : uint8_t { kStatistics, kChecksum, kTensor, kStructure };

/// Stands in the place of what an item does not have.
inline constexpr std::string_view kNotAvailableText = "N/A";
/// Stands in the place of a file's name where there is no file.
inline constexpr std::string_view kNoDataName = "-1";

enum Stat : uint8_t { kMax, kMin, kMean, kNorm, kStatCount };

/// Columns of what statistics differ by, by Stat.
inline constexpr std::array<std::string_view, kStatCount> kDiffTitles{"Max diff", "Min diff", "Mean diff",
                                                                      "L2norm diff"};
inline constexpr std::array<std::string_view, kStatCount> kRelativeTitles{"MaxRelativeErr", "MinRelativeErr",
                                                                          "MeanRelativeErr", "NormRelativeErr"};

/// How the tensors of an item's parts make one.
enum class JoinAxis : uint8_t {
  kFirstOnly,  // they are the same tensor: an input that several modules read
  kFirst,      // weights and biases: below each other
  kLast,       // outputs: beside each other
};

/// Where an item stands among those of its op: inputs, parameters, outputs, gradients of parameters.
inline int KindOrder(ItemState state) {
  switch (state) {
    case ItemState::kParameter: return 1;
    case ItemState::kOutput: return 2;
    case ItemState::kParameterGrad: return 3;
    default: return 0;
  }
}

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
  bool unwritten = false;               // memory that nobody had written when it was recorded
  bool partly_unwritten = false;        // the same of a part of it
  bool other_part = false;              // not the same part of the whole as its partner: they are not compared
  std::vector<std::string_view> parts;  // their files
  JoinAxis join = JoinAxis::kFirstOnly;
  const JsonValue* entry = nullptr;  // the leaf of the dump; null where there is none
  const JsonValue* leaf = nullptr;   // the same, or the tensor inside an entry of a batch_isend_irecv; null for null
  const JsonValue* dims = nullptr;   // the shape as the dump has it
  const JsonValue* dumped_sum = nullptr;  // the checksum as the dump has it; null where it has none
  std::string checksum;                   // CRC-32 or xor; of values the CRC-32 of their text; "N/A" for null

  std::string_view GradText() const;
  /// By which name the module that makes the call keeps the tensor beside its parameters; "" where it does not.
  std::string_view Buffer() const;
  bool IsProcessGroup() const;
  bool HasData() const { return data_name != kNoDataName; }
  bool HasDType() const { return !dtype.empty() && dtype != kNotAvailableText; }
  bool HasShape() const { return shape != kNotAvailableText; }
};

/// Elements of a shape as items have it: 6 of "[2, 3]".
double ElementsOfShape(std::string_view shape);
/// The largest magnitude of a tensor, by its Max and Min; 0 where they are no numbers.
double Amplitude(const ItemView& item);

/// Describes `item` of the op `op_name`; views point into the item's JSON. `mode` says which fields are needed.
void DescribeItem(std::string_view op_name, Item&& item, CompareMode mode, ItemView* out);

/// Describes all items of an op in table order: inputs, parameters, outputs, gradients of parameters. Entries of `out`
/// are reused; *count is their number.
void DescribeOp(std::string_view op_name, const JsonValue& op, CompareMode mode, std::vector<Item>* scratch,
                std::vector<ItemView>* out, size_t* count);

}  // namespace msprobe
