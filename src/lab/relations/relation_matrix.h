// What `msprobe lab` does: each call of a dump under changes that must not change its result, as a table in ulp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/relations/relation.h"
#include "lab/relations/relation_process.h"

namespace msprobe {

struct MatrixSettings {
  std::string dump;          // a dump.json, or a directory of a dump, of which the first step and rank are taken
  std::string device = "0";  // a number of an accelerator, or a name of torch
  std::vector<std::string> relations, ops;  // names; empty: the usual ones, all functions
  int64_t rows = 0, chunk = 0, pad = 8;     // of the changed batch, chunk, and padding; 0: half. Negative pad: in front
  int64_t batch = 0, sequence = 0;          // sizes of the recorded run; 0: as its first call has them
};

/// A call, and what it gave under each relation that was asked for.
struct MatrixRow {
  std::string full, api;  // "Functional.linear.0", "linear"
  RelationAnswer answer;
};

/// The first call whose result a relation changes. Those before it give the same, so that in a run that is changed in
/// the same way the difference begins here.
struct RelationOrigin {
  size_t relation = 0;
  std::optional<size_t> row;  // none: no call
  uint64_t differ = 0;        // calls
  uint64_t unknown = 0;       // calls before it (or of all) of which the relation could not be said
};

struct MatrixReport {
  std::string dump, device, torch;
  int64_t threads = 0, batch = 0, sequence = 0;
  std::vector<size_t> relations;
  std::vector<MatrixRow> rows;          // calls that compute, in the order of the dump
  uint64_t copies = 0;                  // calls that only move elements, which were left out
  std::vector<RelationOrigin> origins;  // of `relations`
  Message truncated;
};

StatusOr<MatrixReport> MakeRelationMatrix(const MatrixSettings& settings);

}  // namespace msprobe
