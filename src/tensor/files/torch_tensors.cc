// The tensors of a file of torch.save(), with names made of the keys and places that lead to them.
#include "tensor/files/pt_reader.h"
#include "tensor/files/tensor_reader.h"

namespace msprobe {
namespace {

std::string KeyText(const PtValue& key) {
  if (key.kind == PtValue::Kind::kText) return std::string(key.text);
  if (key.kind == PtValue::Kind::kInt || key.kind == PtValue::Kind::kBool) return std::to_string(key.i);
  return "?";
}

/// The reader of the pickle bounds how deep and how large values are.
void Flatten(const PtValue& value, const std::string& name, std::vector<FileTensor>* out) {
  const auto child = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (value.kind == PtValue::Kind::kTensor) {
    const PtTensor& t = *value.tensor;
    out->push_back({name, t.dtype, t.data, t.shape, t.strides, t.requires_grad, t.plain});
  } else if (value.kind == PtValue::Kind::kDict) {
    for (size_t i = 0; i + 1 < value.items.size(); i += 2)
      Flatten(value.items[i + 1], child(KeyText(value.items[i])), out);
  } else {
    for (size_t i = 0; i < value.items.size(); ++i) Flatten(value.items[i], child(std::to_string(i)), out);
  }
}

StatusOr<std::vector<FileTensor>> ReadTorch(std::string_view bytes, const std::string& path, DType) {
  MSP_ASSIGN_OR_RETURN(const PtFile file, PtFile::Parse(bytes, path));
  std::vector<FileTensor> tensors;
  Flatten(file.value(), "", &tensors);
  return tensors;
}

}  // namespace

constinit const TensorReader kTorchReader{[](std::string_view) { return true; }, ReadTorch};

}  // namespace msprobe
