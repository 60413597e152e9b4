// The items of an op whose text was kept, and the values of an item.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "compare/values/item_view.h"
#include "compare/values/tensor_folder.h"
#include "diagnose/anatomy/evidence.h"
#include "diagnose/anatomy/value_pair.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {

class OpItems {
 public:
  /// Nothing for a text that is none.
  static std::unique_ptr<OpItems> Read(const OpText& op);
  const std::vector<ItemView>& items() const { return items_; }
  /// By ".output.0"; null for none.
  const ItemView* Find(std::string_view suffix) const;

 private:
  JsonDoc doc_;
  std::vector<Item> scratch_;
  std::vector<ItemView> items_;
  std::string name_;
};

/// Elements and the file in which they lie.
struct ItemValues {
  std::unique_ptr<TensorFile> file;
  std::optional<ElementsOf> elements;
};
/// No elements where there is no file, or none that can be read.
ItemValues ValuesOf(const TensorFolder& folder, std::string_view data_name, std::string_view dtype, bool hold = true);

}  // namespace msprobe
