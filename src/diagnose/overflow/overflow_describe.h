// What a source of overflow looks like to a reader: its op, line, tensors, and what came of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/message.h"
#include "diagnose/overflow/overflow_finding.h"

namespace msprobe {

/// The files beside a dump.json, opened when they are asked for; a missing or bad one is a warning.
class OverflowFiles {
 public:
  OverflowFiles(int rank, const DumpFile* dump) : rank_(rank), dump_(dump) {}
  int rank() const { return rank_; }
  const DumpFile& dump() const { return *dump_; }
  /// The op and what it is part of, outermost first.
  std::vector<std::string> ChainOf(std::string_view op);
  /// Null without a stack.
  const std::vector<std::string>* FramesOf(std::string_view op);
  /// Name, module and line of an op.
  OverflowOp Describe(std::string_view op);
  std::vector<Message>* warnings() { return &warnings_; }

 private:
  void OpenConstruct();
  void OpenStacks();
  int rank_;
  const DumpFile* dump_;
  bool construct_open_ = false, stacks_open_ = false;
  std::optional<ConstructFile> construct_;
  std::unordered_map<std::string_view, std::string_view> parents_;
  std::optional<StackFile> stacks_;
  std::vector<Message> warnings_;
};

/// "float32 [2, 32], max 3.5, min -inf, mean nan, 3 NaN"; a plain argument as its value.
std::string ItemText(const JsonValue& leaf);

/// A step with everything that was found in it.
struct OverflowStepView {
  const std::vector<OverflowRank>* ranks = nullptr;
  std::vector<OverflowFiles>* files = nullptr;
  const std::vector<OverflowSource>* sources = nullptr;
};

StatusOr<OverflowFinding> DescribeSource(const OverflowStepView& step, const OverflowSource& source);

/// The ops of a rank up to `end` that came nearest to overflow, the nearest first.
StatusOr<std::vector<OverflowFinding::Near>> NearestTo(const OverflowStepView& step, uint32_t rank, uint32_t end);

/// One entry of the result file for each place of `sources`, by rank.
StatusOr<std::string> OverflowNodes(const OverflowStepView& step, const std::vector<const OverflowSource*>& sources);

}  // namespace msprobe
