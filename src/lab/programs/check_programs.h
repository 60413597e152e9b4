// The Python modules of the process that makes calls again, python/msprobe/_compat.py, _calls.py, _element.py,
// _choices.py, _near.py, _steps.py, _extended.py, _draws.py, _recorded.py and _collectives.py.
#pragma once

#include <string_view>

namespace msprobe {

/// Names that a release of PyTorch lacks.
std::string_view CompatProgram();
/// Functions and calls.
std::string_view CallsProgram();
/// How far rounding may move each element.
std::string_view ElementProgram();
/// Choices among equal elements.
std::string_view ChoicesProgram();
/// Whether a result is near enough to the truth at once.
std::string_view NearProgram();
/// What rounding after each step of a call changes.
std::string_view StepsProgram();
/// The truth where float64 is the dtype.
std::string_view ExtendedProgram();
/// Whether two sides draw from one distribution.
std::string_view DrawsProgram();
/// Results of a dump in place of those of a device.
std::string_view RecordedProgram();

/// Communications among processes of gloo.
std::string_view CollectivesProgram();

/// The process for calls of MindSpore, python/msprobe/_lab_mindspore.py, and its numpy functions, _numpy_truth.py.
std::string_view MindSporeProgram();
std::string_view NumpyTruthProgram();

}  // namespace msprobe
