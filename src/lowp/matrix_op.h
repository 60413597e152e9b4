// The calls of a dump that matrix units compute: what they multiply, from their recorded arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "dump/reader.h"
#include "lowp/tensor_rows.h"

namespace msprobe {

enum class MatrixOpKind : uint8_t {
  kLinear,       // input [..., K], weight [N, K]
  kMatmul,       // a [..., M, K], b [..., K, N]
  kConvolution,  // input [batch, channels, ...], weight [N, channels / groups, ...]
  kAttention,    // query [..., L, E], key [..., S, E], value [..., S, V]
};

struct ConvolutionShape {
  std::vector<int64_t> stride, padding, dilation;  // for each dimension of space
  int64_t groups = 1;
  bool known = false;
};

struct MatrixOp {
  std::string name;   // of the call: "Functional.linear.3.forward"
  std::string layer;  // "model.layers.0.mlp.down_proj"; the call without a module
  MatrixOpKind kind = MatrixOpKind::kLinear;
  RecordedTensor a, b, value;  // input and weight; query, key and value
  RecordedTensor mask;         // of an attention
  RecordedTensor gradient;     // of the result; not there without a backward pass
  ConvolutionShape convolution;
  bool causal = false;
  double attention_scale = 0;  // 0: 1 / sqrt(E)
};

struct MatrixOps {
  std::vector<MatrixOp> ops;           // in the order of the dump
  std::vector<std::string> not_read;   // calls that multiply matrices in a way that is not emulated
  std::vector<std::string> no_values;  // calls whose tensors were not recorded
};

/// `earlier`: dumps of earlier steps of this rank, for delayed scales.
StatusOr<MatrixOps> FindMatrixOps(const DumpFile& dump, const std::vector<const DumpFile*>& earlier);

}  // namespace msprobe
