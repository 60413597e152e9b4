// Hooks of Cells: they record forward calls, and have their backward recorded.
#pragma once

#include "bindings/python/py.h"
#include "capture/op_name.h"

namespace msprobe {

/// Hooks a Cell whose entries are named `base`. False with a Python error.
bool AddCell(PyObject* cell, const char* base);
void InstallCellHooks();
void RemoveCellHooks();
/// Ends the calls of this thread that were left by an exception, where no hook has told so.
void DropLeftCells();
/// While a graph is compiled its Cells are as they are without us: hooks would be compiled, too.
void HideCellHooks(bool hide);
/// The backward of the innermost Cell that runs on this thread; empty outside of all.
OpName BackwardOfCell();
/// No call of a Cell runs on this thread.
bool OutsideCells();

}  // namespace msprobe
