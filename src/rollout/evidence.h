// What was found of one side, a trainer or an engine. Each part is optional: a stage judges from its own parts alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/status.h"

namespace msprobe {

/// Whose a file is: what is only called "logprobs" is of this side.
enum class RolloutSide : uint8_t { kTrain, kRollout };

/// How the engine was told to draw tokens; nothing where the records do not say.
struct SamplingSettings {
  std::optional<double> temperature, top_p, top_k, min_p;
};

/// A sequence as a program recorded it. Vectors of one value for each token are as long as `tokens`, those of the
/// response as long as `response()`; empty where they were not recorded.
struct RolloutRequest {
  std::string id;
  std::vector<int64_t> tokens;  // prompt, then response, without padding
  int64_t prompt = 0;           // tokens of the prompt
  std::vector<int64_t> positions;
  std::vector<uint8_t> response_mask;    // of the response: 0 where the loss leaves a token out (tools, turns)
  std::vector<double> train_logprobs;    // of the response, by the trainer
  std::vector<double> rollout_logprobs;  // of the response, by the engine
  SamplingSettings sampling;
  std::string text;                // of the response
  std::optional<bool> truncated;   // the engine stopped because of a limit
  std::optional<int64_t> version;  // of the weights that wrote it
  std::vector<int32_t> experts;    // of token, layer, choice: tokens * layers * choices
  int64_t expert_layers = 0, expert_choices = 0;
  std::vector<float> router_logits;  // of token, layer, expert
  std::vector<float> logits;         // of the response, a row of `vocabulary` for each token
  int64_t vocabulary = 0;
  bool experts_of_response = false;  // experts and router logits are of the tokens of the response only
  std::string file;                  // and where in it: "rollout/12.jsonl line 3"
  int64_t line = 0;

  int64_t response() const { return static_cast<int64_t>(tokens.size()) - prompt; }
};

struct RolloutRecords {
  std::string path;
  std::string program;  // "verl", "TRL", "slime", "SkyRL"; "" where nothing tells
  std::vector<RolloutRequest> requests;
  std::set<int64_t> padding;   // ids that stand where the masks leave tokens out
  std::vector<Message> notes;  // what was left out, and why
};

/// A dump.json of a step of one rank.
struct SideDump {
  std::string path;  // of dump.json
  int step = -1, rank = 0;
};

/// A checkpoint, or a file of fingerprints.
struct SideWeights {
  std::string path;
  int64_t step = -1;  // its name says so, else -1
  bool fingerprint = false;
  bool dump = false;  // the parameters of a recorded step: `path` is its dump.json
};

struct SideEvidence {
  std::vector<std::string> given;
  std::optional<RolloutRecords> records;
  std::vector<SideWeights> weights;  // the newest last
  std::vector<SideDump> dumps;       // by step and rank
  std::vector<Message> notes;        // what looks like one of these and could not be read
  bool empty() const { return !records && weights.empty() && dumps.empty(); }
};

/// The gap between the log-probabilities of both sides at a token of a response.
struct TokenGap {
  std::string request;
  int64_t position = 0;  // in the whole sequence
  double train = 0, rollout = 0;
};

}  // namespace msprobe
