// Rows of tensor dumps: the values of both sides are read from their files and measured.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "compare/tensor_diff.h"
#include "graph/precision.h"

namespace msprobe {

/// Measures the pairs of `rows`; each then points to its entry in `diffs`. With `log`, a line for each row is appended.
void MeasureTensors(const TensorPairs& pairs, std::vector<Row>* rows, std::deque<TensorDiff>* diffs, std::string* log);

/// The same by other means than TensorPairs::Diff; the golden item is null where there is no partner.
using MeasurePair = std::function<void(const ItemView& target, const ItemView* golden, TensorDiff* out)>;
void MeasureTensors(const MeasurePair& measure, std::vector<Row>* rows, std::deque<TensorDiff>* diffs,
                    std::string* log);

/// A row whose values could not be compared does not pass without a word: the worst level of those. After JudgeNode.
Level NoteNotMeasured(std::string_view node, std::deque<TensorDiff>* diffs, std::vector<Row>* rows);

}  // namespace msprobe
