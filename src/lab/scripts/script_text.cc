#include "lab/scripts/script_text.h"

#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {

std::string Quoted(std::string_view s) {
  std::string out;
  AppendPyStrRepr(out, s);
  return out;
}

void Put(std::string* text, std::string_view from, const std::string& to) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at + to.size()))
    text->replace(at, from.size(), to);
}

std::string EndOf(const JsonValue& leaf, const char* key, double guess) {
  const JsonValue* v = leaf.Find((std::string(key) + "_except_inf_nan").c_str());
  if (!v || !v->IsNumber()) v = leaf.Find(key);
  double value = v && v->IsNumber() ? v->Number() : v && v->IsBool() ? v->Bool() : guess;
  if (!std::isfinite(value)) value = guess;
  return PyRepr(value);
}

StatusOr<std::string> FileOf(const TensorFolder& folder, const std::string& key, const JsonValue& leaf) {
  const JsonValue* name = leaf.Find("data_name");
  if (!name || !name->IsString()) return BadInput(Msg("the dump holds no values of {}: use random_data", OneLine(key)));
  MSP_ASSIGN_OR_RETURN(const std::string path, folder.Find(name->Text()));
  MSP_RETURN_IF_ERROR(TensorFile::Open(path, ParseDType(leaf.Find("dtype")->Text())).status());
  const std::unique_ptr<char, decltype(&std::free)> whole(realpath(path.c_str(), nullptr), &std::free);
  return std::string(whole ? whole.get() : path);
}

}  // namespace msprobe
