#include "lowp/matrix_op.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "dump/dump_items.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

/// How a call names what it multiplies: by position behind `first`, or by keyword.
struct MatrixCall {
  std::string_view api;
  MatrixOpKind kind;
  size_t first;  // position of the first operand
  std::string_view a, b;
};

constexpr std::array kCalls = {
    MatrixCall{"linear", MatrixOpKind::kLinear, 0, "input", "weight"},
    MatrixCall{"dense", MatrixOpKind::kLinear, 0, "input", "weight"},
    MatrixCall{"matmul", MatrixOpKind::kMatmul, 0, "input", "other"},
    MatrixCall{"__matmul__", MatrixOpKind::kMatmul, 0, "input", "other"},
    MatrixCall{"mm", MatrixOpKind::kMatmul, 0, "input", "mat2"},
    MatrixCall{"bmm", MatrixOpKind::kMatmul, 0, "input", "mat2"},
    MatrixCall{"addmm", MatrixOpKind::kMatmul, 1, "mat1", "mat2"},
    MatrixCall{"baddbmm", MatrixOpKind::kMatmul, 1, "batch1", "batch2"},
    MatrixCall{"conv1d", MatrixOpKind::kConvolution, 0, "input", "weight"},
    MatrixCall{"conv2d", MatrixOpKind::kConvolution, 0, "input", "weight"},
    MatrixCall{"conv3d", MatrixOpKind::kConvolution, 0, "input", "weight"},
    MatrixCall{"scaled_dot_product_attention", MatrixOpKind::kAttention, 0, "query", "key"},
};

const MatrixCall* FindCall(std::string_view api) {
  const auto found = std::find_if(kCalls.begin(), kCalls.end(), [&](const MatrixCall& c) { return c.api == api; });
  return found == kCalls.end() ? nullptr : &*found;
}

/// An op's leaves by the end of their names.
class Arguments {
 public:
  Arguments(const std::vector<Item>& items, const TensorFolder& folder) : items_(items), folder_(folder) {}

  const JsonValue* Leaf(std::string_view suffix) const {
    for (const Item& item : items_) {
      if (item.suffix == suffix) return item.leaf;
    }
    return nullptr;
  }
  const JsonValue* Argument(size_t position, std::string_view keyword) const {
    const JsonValue* leaf = Leaf(".input." + std::to_string(position));
    return leaf != nullptr ? leaf : Leaf(".input." + std::string(keyword));
  }
  /// What is no tensor of floating type (a mask may have truths), or has no values here, is not there.
  RecordedTensor Tensor(const JsonValue* leaf, bool mask = false) const {
    RecordedTensor out;
    if (leaf == nullptr || (*leaf)["data_name"].Text().empty()) return out;
    out.dtype = ParseDType((*leaf)["dtype"].Text());
    if (!IsFloating(out.dtype) && !(mask && out.dtype == DType::kBool)) return out;
    const StatusOr<std::string> path = folder_.Find((*leaf)["data_name"].Text());
    if (!path.ok()) return out;
    for (const JsonValue& n : (*leaf)["shape"].Items()) out.shape.push_back(n.Int());
    out.path = *path;
    return out;
  }
  /// One number for all dimensions of space, or one for each.
  std::vector<int64_t> PerDimension(size_t position, std::string_view keyword, size_t dims, int64_t otherwise) const {
    std::vector<int64_t> out(dims, otherwise);
    const std::string at = ".input." + std::to_string(position), named = ".input." + std::string(keyword);
    for (const std::string& base : {at, named}) {
      if (const JsonValue* one = Leaf(base); one != nullptr && (*one)["value"].IsInt())
        out.assign(dims, (*one)["value"].Int());
      for (size_t d = 0; d < dims; ++d) {
        const JsonValue* each = Leaf(base + "." + std::to_string(d));
        if (each == nullptr && dims > 0 && d > 0) each = Leaf(base + ".0");
        if (each != nullptr && (*each)["value"].IsInt()) out[d] = (*each)["value"].Int();
      }
    }
    return out;
  }
  bool IsText(size_t position, std::string_view keyword) const {
    const JsonValue* leaf = Argument(position, keyword);
    return leaf != nullptr && (*leaf)["value"].IsString();
  }

 private:
  const std::vector<Item>& items_;
  const TensorFolder& folder_;
};

std::string BackwardOf(std::string_view name) {
  std::string out(name);
  const size_t at = out.rfind("forward");
  return at == std::string::npos ? out : out.replace(at, 7, "backward");
}

/// "model.layers.0.mlp.up_proj" of "Module.model.layers.0.mlp.up_proj.Linear.forward.0".
std::string LayerOf(std::string_view module) {
  std::string_view base = ParseOpName(module).base;
  base = base.substr(0, base.rfind('.'));
  const size_t dot = base.find('.');
  return std::string(dot == std::string_view::npos ? base : base.substr(dot + 1));
}

class MatrixOpFinder {
 public:
  MatrixOpFinder(const DumpFile& dump, const std::vector<const DumpFile*>& earlier)
      : dump_(dump), earlier_(earlier), folder_(dump.path()), items_(dump) {}

  StatusOr<MatrixOps> Find() {
    MSP_ASSIGN_OR_RETURN(parents_, dump_.Parents());
    for (const bool modules : {false, true}) {
      for (uint32_t i = 0; i < dump_.ops().size(); ++i) {
        const std::string_view name = dump_.ops().NameAt(i);
        if (IsModuleName(name) != modules || ParseOpName(name).direction != OpDirection::kForward) continue;
        MSP_RETURN_IF_ERROR(Look(i, name, modules));
      }
    }
    NameLayers();
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [place, op] : found_) out_.ops.push_back(std::move(op));
    return std::move(out_);
  }

 private:
  Status Look(uint32_t i, std::string_view name, bool module) {
    const std::string_view api = ApiOrClassOf(name);
    const Arithmetic arithmetic = TraitsOf(api).arithmetic;
    const MatrixCall* call = module ? nullptr : FindCall(api);
    if (call == nullptr && arithmetic != Arithmetic::kProduct && arithmetic != Arithmetic::kAttention)
      return OkStatus();
    if (module && calls_in_.count(std::string(name)) > 0)
      return OkStatus();  // its call is there, with all it was given
    if (!module) {
      if (parents_) ++calls_in_[std::string(parents_->ParentOf(name))];
      if (call == nullptr) {
        out_.not_read.emplace_back(name);
        return OkStatus();
      }
    }
    MSP_ASSIGN_OR_RETURN(std::vector<Item> * items, items_.Read(i));
    const Arguments arguments(*items, folder_);
    MatrixOp op;
    op.name = name;
    op.layer = module ? LayerOf(name) : std::string(name);
    if (module) {
      if (!ReadModule(arguments, &op)) return OkStatus();
    } else {
      ReadCall(*call, arguments, &op);
    }
    if (!op.a.there() || !op.b.there()) {
      out_.no_values.emplace_back(name);
      return OkStatus();
    }
    MSP_RETURN_IF_ERROR(AddGradient(&op));
    MSP_RETURN_IF_ERROR(AddHistory(&op));
    found_.emplace_back(i, std::move(op));
    return OkStatus();
  }

  /// A layer is its module where that multiplies once; else the call within it.
  void NameLayers() {
    for (auto& [place, op] : found_) {
      const std::string_view parent = parents_ ? parents_->ParentOf(op.name) : std::string_view();
      if (IsModuleName(op.name) || !IsModuleName(parent)) continue;
      const std::string_view call = ParseOpName(op.name).full;
      op.layer = LayerOf(parent);
      if (calls_in_.at(std::string(parent)) == 1) continue;
      const size_t begin = call.find('.') + 1;
      op.layer += ": " + std::string(call.substr(begin, call.rfind('.') - begin));
    }
  }

  static void ReadCall(const MatrixCall& call, const Arguments& arguments, MatrixOp* op) {
    op->kind = call.kind;
    op->a = arguments.Tensor(arguments.Argument(call.first, call.a));
    op->b = arguments.Tensor(arguments.Argument(call.first + 1, call.b));
    if (call.kind == MatrixOpKind::kAttention) {
      op->value = arguments.Tensor(arguments.Argument(2, "value"));
      const JsonValue* mask = arguments.Argument(3, "attn_mask");
      op->mask = arguments.Tensor(mask, true);
      const JsonValue* causal = arguments.Argument(5, "is_causal");
      op->causal = causal != nullptr && (*causal)["value"].Bool();
      const JsonValue* scale = arguments.Argument(6, "scale");
      if (scale != nullptr && (*scale)["value"].IsNumber()) op->attention_scale = (*scale)["value"].Number();
      const bool mask_lost = mask != nullptr && !(*mask)["dtype"].Text().empty() && !op->mask.there();
      if (!op->value.there() || mask_lost) op->a = {};
    }
    if (call.kind == MatrixOpKind::kConvolution && op->a.shape.size() > 2) {
      const size_t dims = op->a.shape.size() - 2;
      ConvolutionShape& shape = op->convolution;
      shape.stride = arguments.PerDimension(3, "stride", dims, 1);
      shape.padding = arguments.PerDimension(4, "padding", dims, 0);
      shape.dilation = arguments.PerDimension(5, "dilation", dims, 1);
      shape.groups = arguments.PerDimension(6, "groups", 1, 1)[0];
      shape.known = !arguments.IsText(4, "padding");
    }
  }

  /// False for a module that has no weight to multiply by.
  static bool ReadModule(const Arguments& arguments, MatrixOp* op) {
    const JsonValue* weight = arguments.Leaf(".parameters.weight");
    if (weight == nullptr) return false;
    op->a = arguments.Tensor(arguments.Leaf(".input.0"));
    op->b = arguments.Tensor(weight);
    op->kind = (*weight)["shape"].size() > 2 ? MatrixOpKind::kConvolution : MatrixOpKind::kLinear;
    return true;
  }

  Status AddGradient(MatrixOp* op) {
    const std::optional<size_t> backward = dump_.FindOp(BackwardOf(op->name));
    if (!backward) return OkStatus();
    MSP_ASSIGN_OR_RETURN(std::vector<Item> * items, items_.Read(static_cast<uint32_t>(*backward)));
    const Arguments arguments(*items, folder_);
    op->gradient = arguments.Tensor(arguments.Leaf(".input.0"));
    return OkStatus();
  }

  /// The largest magnitudes that the same tensors had in earlier steps, by their statistics.
  Status AddHistory(MatrixOp* op) {
    for (const DumpFile* dump : earlier_) {
      MSP_RETURN_IF_ERROR(AddHistory(*dump, op->name, op->kind, {{&op->a, 0}, {&op->b, 1}, {&op->value, 2}}));
      MSP_RETURN_IF_ERROR(AddHistory(*dump, BackwardOf(op->name), op->kind, {{&op->gradient, 0}}));
    }
    return OkStatus();
  }
  static Status AddHistory(const DumpFile& dump, const std::string& name, MatrixOpKind kind,
                           const std::vector<std::pair<RecordedTensor*, size_t>>& tensors) {
    const std::optional<size_t> at = dump.FindOp(name);
    if (!at) return OkStatus();
    DumpItems reader(dump);
    MSP_ASSIGN_OR_RETURN(std::vector<Item> * items, reader.Read(static_cast<uint32_t>(*at)));
    for (const auto& [tensor, place] : tensors) {
      const MatrixCall* call = FindCall(ApiOrClassOf(name));
      const size_t first =
          call != nullptr && kind == MatrixOpKind::kMatmul && name.find("backward") == std::string::npos ? call->first
                                                                                                         : 0;
      const std::string suffix = ".input." + std::to_string(place + first);
      for (const Item& item : *items) {
        const bool weight = place == 1 && item.suffix == ".parameters.weight";
        if ((item.suffix != suffix && !weight) || item.leaf == nullptr) continue;
        const double largest =
            std::max(std::fabs((*item.leaf)["Max"].Number()), std::fabs((*item.leaf)["Min"].Number()));
        if (std::isfinite(largest)) tensor->history = std::max(tensor->history, largest);
      }
    }
    return OkStatus();
  }

  const DumpFile& dump_;
  const std::vector<const DumpFile*>& earlier_;
  TensorFolder folder_;
  DumpItems items_;
  std::shared_ptr<const ParentIndex> parents_;
  std::map<std::string, int> calls_in_;  // of the modules whose calls are in the dump
  std::vector<std::pair<uint32_t, MatrixOp>> found_;
  MatrixOps out_;
};

}  // namespace

StatusOr<MatrixOps> FindMatrixOps(const DumpFile& dump, const std::vector<const DumpFile*>& earlier) {
  return MatrixOpFinder(dump, earlier).Find();
}

}  // namespace msprobe
