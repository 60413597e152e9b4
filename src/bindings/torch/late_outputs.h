// Modules that returned a tensor before the communication that fills it was over (functional collectives; the hooks of
// tensor parallelism do so): their outputs are recorded when somebody has waited for it, which is when it is first
// used.
#pragma once

#include <memory>

#include "bindings/python/py.h"
#include "capture/record.h"

namespace msprobe {

/// Takes the record, and what stands behind the output in it; false: all of the output is there.
bool KeepUntilArrived(Record* record, std::unique_ptr<Record>* behind, PyObject* output);
/// Records those that are there now.
void RecordArrived();
/// The step ends: what is still missing is counted.
void GiveUpLateOutputs();

}  // namespace msprobe
