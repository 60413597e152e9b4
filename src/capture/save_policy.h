// Which ops have their tensors saved, and when that is decided.
//
// kNow: a tensor goes to TensorFiles when it is recorded. kDeferred: the record keeps what it needs to save the tensors
// (references; copies of arguments that the op is about to change) until the capture knows whether it wants them:
//
//     Record* record = recorder->Acquire(name);   // its `save` is what set_save_policy() says, and may be set anew
//     ... RecordValue(record, ...) ...
//     overflow ? SavePending(record) : DropPending(record);   // bindings/values.h, with the GIL
//     recorder->Commit(record);
//
// Saving writes the files and puts `data_name` into the record's items. Commit() drops what nobody decided. A tensor
// whose memory has changed since it was recorded is not saved but counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capture/op_name.h"

namespace msprobe {

/// Whether the tensors of an op are saved.
enum class SaveMode : uint8_t {
  kNone,      // statistics only
  kNow,       // at once
  kDeferred,  // kept until somebody says SavePending() or DropPending()
};

/// Which ops' tensors are saved by the configuration.
struct SavePolicy {
  SaveMode all = SaveMode::kNone;        // task tensor: kNow; tasks that decide later: kDeferred
  std::vector<std::string> tensor_list;  // parts of names of ops: these are saved now
  bool saves() const { return all != SaveMode::kNone || !tensor_list.empty(); }
  SaveMode For(const OpName& name) const;
};

}  // namespace msprobe
