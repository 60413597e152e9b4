// A journal of series as Python holds it, and as the hooks of gradients do.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/monitor/summary_memo.h"
#include "bindings/python/py.h"
#include "monitor/journal.h"

namespace msprobe {

/// What was read of a tensor, to become a value later.
struct TensorReading {
  TensorSummary summary;
  DType dtype = DType::kUnknown;
  std::vector<int64_t> shape;
};

class MonitorJournal {
 public:
  /// nanobind::value_error: the directory cannot be written.
  MonitorJournal(const std::string& directory, double eps, int digits, int64_t steps_per_file, bool csv, bool events,
                 const std::vector<std::tuple<std::string, std::optional<double>>>& rules);

  /// The positions of those that are no plain tensors in host memory.
  /// `often`: tensors of modules, of which one is met several times.
  std::vector<size_t> Take(nanobind::list series, nanobind::list tensors, int threads, bool often);
  /// The same of borrowed objects, which others hold meanwhile.
  std::vector<size_t> TakeItems(const std::vector<uint32_t>& series, const std::vector<PyObject*>& tensors, int threads,
                                bool often);
  /// False: it is no plain tensor in host memory.
  bool TakeOne(uint32_t series, PyObject* tensor, int threads);
  /// Reads a tensor of modules now, without a series; false: it is no plain tensor in host memory.
  bool Read(PyObject* tensor, int threads, TensorReading* out);
  TensorReading ReadMemory(const TensorView& view, int threads);
  void PutReading(uint32_t series, const TensorReading& reading);
  /// (count, min, max, mean, norm, NaN, near zero) that a device gave of a tensor of this shape and type.
  void PutSummary(uint32_t series, const std::vector<double>& numbers, const std::vector<int64_t>& shape,
                  const std::string& dtype);
  void Put(uint32_t series, nanobind::list values);
  void Drop();
  std::vector<uint32_t> Heard(bool ever);
  nanobind::dict Write(int64_t step);
  nanobind::list Rows(uint32_t table);
  Journal& journal() { return *journal_; }

  /// Whether hooks of gradients take what they see, and the number of the step that they see it in.
  bool armed = false;
  uint64_t step = 0;
  /// Puts what others hold back for it, before it is written or asked.
  std::function<void()> before_use;

 private:
  std::unique_ptr<Journal> journal_;
  SummaryMemo memo_;
};

}  // namespace msprobe
