#include "bindings/responses.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "bindings/python/raise.h"
#include "responses/response_settings.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

ResponseLimits LimitsOf(const std::string& path) {
  StatusOr<ResponseLimits> limits = ReadResponseLimits(path);
  Raise(limits.ok() ? OkStatus() : limits.status());
  return *limits;
}

struct Candidate {
  double logprob;
  int64_t id;
};

/// The candidates of each position: dicts of ids and log-probabilities.
void ReadCandidates(nb::list dicts, std::vector<std::vector<Candidate>>* out) {
  out->resize(nb::len(dicts));
  for (size_t i = 0; i < out->size(); ++i) {
    const nb::object dict = dicts[i];
    if (!PyDict_Check(dict.ptr())) throw nb::type_error("topk_logprobs must hold a dict for each token");
    std::vector<Candidate>& row = (*out)[i];
    row.clear();
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict.ptr(), &at, &key, &value) != 0) {
      const double logprob = PyFloat_AsDouble(value);
      if (logprob == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
      row.push_back({logprob, PyLong_Check(key) ? PyLong_AsLongLong(key) : -1});
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
    }
  }
}

class ResponseReader {
 public:
  explicit ResponseReader(const std::string& settings) : detector_(LimitsOf(settings)) {}

  /// (number of the anomaly, position).
  std::pair<int, int64_t> Find(nb::list dicts, const std::vector<int64_t>& tokens, nb::bytes categories) {
    if (nb::len(dicts) == 0 || tokens.empty()) return {0, -1};
    ReadCandidates(dicts, &rows_);
    size_t least = std::numeric_limits<size_t>::max();
    for (const auto& row : rows_) least = std::min(least, row.size());
    if (candidates_ == 0) candidates_ = least;  // of the first response, for all
    const size_t count = std::min(candidates_, least);
    logprobs_.clear();
    ids_.clear();
    for (auto& row : rows_) {
      // Those that are no number stay where they are: they are found before order matters.
      std::stable_sort(row.begin(), row.end(),
                       [](const Candidate& a, const Candidate& b) { return a.logprob > b.logprob; });
      for (size_t i = 0; i < count; ++i) {
        logprobs_.push_back(row[i].logprob);
        ids_.push_back(row[i].id);
      }
    }
    ResponseTokens response;
    response.tokens = tokens;
    response.positions = rows_.size();
    response.candidates = count;
    response.logprobs = logprobs_;
    response.ids = ids_;
    response.categories = {reinterpret_cast<const uint8_t*>(categories.c_str()), categories.size()};
    const nb::gil_scoped_release release;
    const ResponseFinding found = detector_.Find(response);
    return {static_cast<int>(found.anomaly), found.position};
  }

 private:
  AnomalyDetector detector_;
  size_t candidates_ = 0;
  std::vector<std::vector<Candidate>> rows_;
  std::vector<double> logprobs_;
  std::vector<int64_t> ids_;
};

}  // namespace

void BindResponses(nb::module_& m) {
  nb::class_<ResponseReader>(m, "ResponseReader", "Looks for what is wrong with responses.")
      .def(nb::init<const std::string&>(), nb::arg("settings"))
      .def("find", &ResponseReader::Find, nb::arg("topk_logprobs"), nb::arg("tokens"), nb::arg("categories"),
           "(number of what is wrong, position); (0, -1) for nothing.");
}

}  // namespace msprobe
