#include "bindings/monitor/torch/bind_taps.h"

#include <memory>
#include <utility>

#include "bindings/monitor/torch/module_taps.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/runtime.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

class PyModuleTaps {
 public:
  PyModuleTaps(nb::object journal, int64_t micro_batches, int threads, nb::object declare, nb::object otherwise,
               bool by_row) {
    if (!InitHookType()) throw nb::python_error();
    ModuleTaps::Options options;
    options.owner = Ref::Borrow(journal.ptr());
    options.journal = nb::cast<MonitorJournal*>(journal);
    options.micro_batches = micro_batches < 1 ? 1 : micro_batches;
    options.threads = threads;
    options.declare = Ref::Borrow(declare.ptr());
    options.otherwise = Ref::Borrow(otherwise.ptr());
    options.by_row = by_row;
    taps_ = std::make_shared<ModuleTaps>(std::move(options));
    taps_->Attach();
  }

  nb::tuple Add(bool forward, bool backward) {
    TapSite* site = taps_->Add(forward, backward);
    PyObject *before = NewBeforeTap(taps_, site), *after = NewAfterTap(taps_, site);
    if (before == nullptr || after == nullptr) throw nb::python_error();
    return nb::make_tuple(nb::steal(before), nb::steal(after));
  }

  void Finish() {
    Shielded([&] { taps_->Finish(); });
  }
  void NextStep() { taps_->NextStep(); }
  bool TakeSurprise() { return taps_->TakeSurprise(); }
  nb::list TakeLeftOut() {
    nb::list found;
    for (const auto& [site, place] : taps_->TakeLeftOut()) found.append(nb::make_tuple(site, place));
    return found;
  }
  void Remove() { taps_->Remove(); }
  bool armed() const { return taps_->armed; }
  void set_armed(bool armed) { taps_->armed = armed; }

 private:
  std::shared_ptr<ModuleTaps> taps_;
};

}  // namespace

void BindModuleTaps(nb::module_& m) {
  nb::class_<PyModuleTaps>(m, "ModuleTaps", "Takes inputs and outputs of modules and their gradients for a journal.")
      .def(nb::init<nb::object, int64_t, int, nb::object, nb::object, bool>(), nb::arg("journal"),
           nb::arg("micro_batches"), nb::arg("threads"), nb::arg("declare"), nb::arg("otherwise"), nb::arg("by_row"),
           "declare(site, is gradient, is output, place, turn, group) gives the number of a series, otherwise(numbers, "
           "tensors) takes what cannot be read here; by_row: rows as TrainerMonitorV2 has them.")
      .def("add", &PyModuleTaps::Add, nb::arg("forward"), nb::arg("backward"),
           "The next site: its hooks before and after the forward of a module, both with kwargs.")
      .def("finish", &PyModuleTaps::Finish, "Takes what is left of gradients of which some never came.")
      .def("next_step", &PyModuleTaps::NextStep, "Calls count from 0 again.")
      .def("take_surprise", &PyModuleTaps::TakeSurprise,
           "Whether a backward pass began within a forward for the first time, late: gradients before it may be "
           "missing. "
           "Told once.")
      .def("take_left_out", &PyModuleTaps::TakeLeftOut,
           "(site, place) of outputs met since the last call whose gradient nobody knows: the module uses them itself, "
           "or gives them twice.")
      .def("remove", &PyModuleTaps::Remove, "Takes nothing more.")
      .def_prop_rw("armed", &PyModuleTaps::armed, &PyModuleTaps::set_armed, "Whether the hooks take what they see.");
}

}  // namespace msprobe
