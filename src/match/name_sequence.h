// Names in order, wherever they are kept: there may be millions, and nobody copies them to look at them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dump/reader.h"

namespace msprobe {

/// A view: what it is made of outlives it.
class NameSequence {
 public:
  NameSequence(const OpList& ops) : ops_(&ops) {}                               // NOLINT: as its names
  NameSequence(const std::vector<std::string_view>& views) : views_(&views) {}  // NOLINT
  NameSequence(const std::vector<std::string>& texts) : texts_(&texts) {}       // NOLINT

  size_t size() const { return ops_ ? ops_->size() : views_ ? views_->size() : texts_->size(); }
  std::string_view operator[](size_t i) const {
    return ops_ ? ops_->NameAt(i) : views_ ? (*views_)[i] : std::string_view((*texts_)[i]);
  }

 private:
  const OpList* ops_ = nullptr;
  const std::vector<std::string_view>* views_ = nullptr;
  const std::vector<std::string>* texts_ = nullptr;
};

}  // namespace msprobe
