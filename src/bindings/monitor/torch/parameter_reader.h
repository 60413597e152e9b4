// Reads what belongs to a parameter right before and right after its update, without Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <unordered_map>

#include "bindings/monitor/monitor_journal.h"
#include "bindings/python/py.h"

namespace msprobe {

class ParameterReader {
 public:
  ParameterReader(nanobind::object journal, int threads);

  /// The series of its gradient, moments, value before and after; -1: not wanted.
  void Add(nanobind::handle parameter, int64_t gradient, int64_t first, int64_t second, int64_t before, int64_t after);
  /// `state`: the optimizer's, by parameter. False: nothing was taken, for something cannot be read here.
  bool Before(nanobind::handle parameter, nanobind::handle state);
  bool After(nanobind::handle parameter);

 private:
  struct Entry {
    Ref parameter;
    int64_t gradient, first, second, before, after;
    const char* data;  // of the parameter, when it was looked at last
  };
  Entry* Find(nanobind::handle parameter);
  bool Take(Entry* entry, std::span<const int64_t> numbers, PyObject* const* tensors);

  Ref owner_;
  MonitorJournal* journal_;
  int threads_;
  std::unordered_map<PyObject*, Entry> entries_;
};

void BindParameterReader(nanobind::module_& m);

}  // namespace msprobe
