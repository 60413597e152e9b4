// Whether an op is recorded, and what becomes of the record of one that has ended: written, kept back, or dropped, as
// the task says.
#pragma once

#include "bindings/python/py.h"
#include "bindings/python/runtime.h"
#include "capture/record.h"

namespace msprobe {

/// The trigger has been configured: sides of ops that data_mode leaves out are seen where the decision needs them, and
/// not written.
void SeeWhatDecides();

/// Whether this op is written to dump.json; asks the filter once per event.
bool ShouldCollect(const OpName& name, Risk risk);
/// For construct.json.
void AddParent(const OpName& name);

/// The op has ended and its record is complete.
void FinishRecord(Record* record);
/// The op has raised an exception, which may be set; the record holds its inputs.
void FinishRaised(Record* record);
/// Of task exception_dump: the ops before now are written, for the script is dying of an exception.
void KeepLastOps();
/// The step ends: what is kept back is dropped, unless an exception is on its way.
void EndKeeping();

}  // namespace msprobe
