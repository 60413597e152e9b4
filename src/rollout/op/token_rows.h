// Which row of which call of either side is which token: position p of a sequence of the trainer, and of the request of
// the engine that has these tokens.
#pragma once

#include <string>
#include <vector>

#include "rollout/op/side_ops.h"

namespace msprobe {

/// A token that both sides computed.
struct PairedToken {
  uint32_t sequence = 0;  // of TokenPairs::names
  int64_t position = 0;
  TokenRow train, rollout;
};

struct TokenPairs {
  std::vector<std::string> names;                      // of the sequences: requests as the engine calls them
  std::vector<PairedToken> tokens;                     // by step of the engine and row
  std::vector<std::vector<TokenRow>> train_positions;  // by sequence: all its rows in the trainer
  size_t steps = 0;                                    // of the engine with rows that are known
  size_t refused = 0;                                  // steps whose rows are not known
  size_t unmatched = 0;                                // requests whose tokens no sequence of the trainer has
  size_t ambiguous = 0;                                // tokens that several sequences fit
  bool seen_train = false, seen_rollout = false;       // ids were found
};

TokenPairs PairTokens(const SideOps& train, const SideOps& rollout);

/// Rows of an engine that are tokens of these sequences; of the trainer nothing is said.
TokenPairs FindTokens(const std::vector<std::vector<int64_t>>& sequences, const SideOps& rollout);

/// By sequence the rows of a trainer's forwards that are its tokens; empty where no forward, or several other ones,
/// begin with them. A last token that was drawn need not have been given to the trainer.
std::vector<std::vector<TokenRow>> FindSequences(const std::vector<std::vector<int64_t>>& sequences,
                                                 const SideOps& train);

}  // namespace msprobe
