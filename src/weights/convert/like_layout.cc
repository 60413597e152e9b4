// The weights of one checkpoint in the names, parts and shapes of another.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/message.h"
#include "base/text.h"
#include "weights/convert/convert_plan.h"
#include "weights/name_map.h"

namespace msprobe {
namespace {

/// A box of `from` that lies in block `into` of the tensor to be made, in that tensor's own dimensions.
WeightBlock Moved(const WeightBlock& from, const WeightBlock& into, bool transposed) {
  const size_t dims = from.begin.size(), lost = into.origin.size() - dims;
  WeightBlock out = from;
  out.begin = into.origin;
  out.size.assign(lost, 1);
  out.strides.assign(lost, 0);
  for (size_t d = 0; d < dims; ++d) {
    out.begin[lost + d] += from.begin[d] - into.begin[d];
    out.size.push_back(from.size[d]);
    out.strides.push_back(from.strides[d]);
  }
  const size_t all = out.begin.size();
  if (transposed && all >= 2) {
    for (auto* member : {&out.begin, &out.size, &out.strides}) std::swap((*member)[all - 2], (*member)[all - 1]);
  }
  out.origin = out.begin;
  return out;
}

/// One tensor of the other checkpoint, filled from those that are paired with it or with its parts.
class LikeTensor {
 public:
  explicit LikeTensor(const WeightTensor& like) : like_(like) {}

  Status Add(const WeightPair& pair) {
    const double plus = pair.a.plus - pair.b.plus;
    if (out_.dtype == DType::kUnknown) {
      out_.dtype = pair.a.dtype;
      out_.plus = plus;
    }
    if (out_.dtype != pair.a.dtype || out_.plus != plus) {
      return BadInput(
          Msg("the parts of {} have different types: convert them first, with --dtype", OneLine(like_.name)));
    }
    for (const WeightBlock& b : pair.b.blocks) {
      for (const WeightBlock& a : pair.a.blocks) {
        BoxView both;
        if (Intersect(a, b, &both)) out_.blocks.push_back(Moved(CutBlock(a, both), b, pair.b.transposed));
      }
    }
    sources_ += (sources_.empty() ? "" : ", ") + pair.a.label();
    return OkStatus();
  }

  Status Finish(ConvertPlan* plan) {
    // Dimensions of length 1 are no dimensions of blocks, but for one that was taken apart.
    const size_t dims = out_.blocks.empty() ? 0 : out_.blocks[0].begin.size();
    out_.shape = Squeezed(like_).shape;
    if (dims == like_.shape.size()) out_.shape = like_.shape;
    if (dims == out_.shape.size() + 1) out_.shape.insert(out_.shape.begin(), 1);
    out_.name = like_.name;
    const bool fits = std::all_of(out_.blocks.begin(), out_.blocks.end(),
                                  [&](const WeightBlock& block) { return block.begin.size() == out_.shape.size(); });
    if (!fits || !IsCovered(out_)) {
      return BadInput(Msg("{} {} is not filled by {}: the models differ, or a table of words is padded",
                          OneLine(like_.name), ShapeText(like_.shape), OneLine(sources_)));
    }
    plan->names.emplace_back(sources_, like_.name);
    plan->weights.push_back({like_.name, like_.shape, out_.dtype, std::move(out_)});
    return OkStatus();
  }

  bool empty() const { return sources_.empty(); }

 private:
  const WeightTensor& like_;
  WeightTensor out_;
  std::string sources_;
};

bool IsCertain(MatchedBy by) { return by <= MatchedBy::kTied; }

}  // namespace

Status PlanLike(Checkpoint* from, Checkpoint* like, const MapFile* map, ConvertPlan* plan) {
  MSP_ASSIGN_OR_RETURN(const NameMap matched, MatchWeights(from, like, map, false));
  std::vector<LikeTensor> made;
  made.reserve(like->tensors.size());
  for (const WeightTensor& t : like->tensors) made.emplace_back(t);
  std::vector<bool> used(from->tensors.size());
  std::string guessed;
  size_t guesses = 0;
  for (const WeightPair& pair : matched.pairs) {
    const bool certain = IsCertain(pair.by) && pair.same_shape;
    if (!certain) {
      if (guesses++ == 0) guessed = pair.b.label();
      continue;
    }
    used[pair.source_a] = true;
    MSP_RETURN_IF_ERROR(made[pair.source_b].Add(pair));
  }
  for (const WeightTensor& t : matched.only_b) {
    if (guesses++ == 0) guessed = t.label();
  }
  if (guesses > 0) {
    return BadInput(
        Msg("{} of the weights of {} have no partner of their shape that names tell for certain, {} among them: write "
            "a map with 'msprobe ckpt compare A B --map-out FILE', correct it and give it with --map",
            guesses, like->path, OneLine(guessed)));
  }
  for (LikeTensor& t : made) {
    if (!t.empty()) MSP_RETURN_IF_ERROR(t.Finish(plan));
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) plan->left_out.push_back(from->tensors[i].name);
  }
  plan->notes = matched.notes;
  return OkStatus();
}

}  // namespace msprobe
