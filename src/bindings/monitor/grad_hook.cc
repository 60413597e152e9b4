#include "bindings/monitor/grad_hook.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "bindings/monitor/monitor_journal.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/py.h"
#include "bindings/python/runtime.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

class GradHook final : public Hook {
 public:
  GradHook(nb::object journal, uint32_t series, int64_t passes, nb::object otherwise, int threads)
      : owner_(Ref::Borrow(journal.ptr())),
        journal_(nb::cast<MonitorJournal*>(journal)),
        series_(series),
        passes_(passes),
        otherwise_(Ref::Borrow(otherwise.ptr())),
        threads_(threads) {}

  PyObject* Call(PyObject* const* args, Py_ssize_t count) override {
    Shielded([&] {
      if (count > 0) Run(args[0]);
    });
    Py_RETURN_NONE;
  }

  int64_t seen() const { return step_ == journal_->step ? seen_ : 0; }

 private:
  void Run(PyObject* parameter) {
    seen_ = seen() + 1;
    step_ = journal_->step;
    if (!journal_->armed || seen_ % passes_ != 0) return;
    static PyObject* const name = PyUnicode_InternFromString("grad");
    Ref gradient(PyObject_GetAttr(parameter, name));
    if (!gradient) return PyErr_Clear();
    if (gradient.get() == Py_None || journal_->TakeOne(series_, gradient.get(), threads_)) return;
    // Guarded there.
    Ref done(PyObject_CallOneArg(otherwise_.get(), gradient.get()));
    if (!done) PyErr_Clear();
  }

  Ref owner_;
  MonitorJournal* journal_;
  uint32_t series_;
  int64_t passes_;
  Ref otherwise_;
  int threads_;
  int64_t seen_ = 0;
  uint64_t step_ = 0;
};

nb::object NewGradHook(nb::object journal, uint32_t series, int64_t passes, nb::object otherwise, int threads) {
  if (!InitHookType()) throw nb::python_error();
  PyObject* made = NewHookObject(
      std::make_unique<GradHook>(std::move(journal), series, passes < 1 ? 1 : passes, std::move(otherwise), threads));
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

int64_t GradHookPasses(nb::handle object) {
  const auto* hook = dynamic_cast<GradHook*>(HookIn(object.ptr()));
  return hook != nullptr ? hook->seen() : 0;
}

}  // namespace

void BindGradHook(nb::module_& m) {
  m.def("gradient_hook", &NewGradHook, nb::arg("journal"), nb::arg("series"), nb::arg("passes"), nb::arg("otherwise"),
        nb::arg("threads"),
        "Called with a parameter, takes its gradient in every so many passes of a step; what cannot be read here is "
        "given to `otherwise`.");
  m.def("gradient_hook_passes", &GradHookPasses, nb::arg("hook"), "How many passes of the open step it has seen.");
}

}  // namespace msprobe
