// The batches that a training saved, step by step and rank by rank, as far as the checklist asks for them.
#pragma once

#include <string>

#include "base/status.h"
#include "checks/pack.h"
#include "jobs/configuration/round_trip.h"

namespace msprobe {

/// Adds the range of the tokens in step_N/rank_N/tokens.npy (or input_ids; also step5, rank0; .pt and .safetensors) to
/// the dataset of `pack`, and the first rows of them to `rows`; false when `directory` holds no such file.
StatusOr<bool> AddRecordedBatches(const std::string& directory, Pack* pack, TokenRows* rows);

}  // namespace msprobe
