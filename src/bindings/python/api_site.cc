#include "bindings/python/api_site.h"

#include <structmember.h>

#include <algorithm>
#include <memory>

#include "bindings/python/api_call.h"
#include "bindings/python/frames.h"
#include "bindings/python/framework.h"
#include "bindings/python/name_counts.h"
#include "bindings/python/thunks.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

std::vector<std::unique_ptr<ApiSite>>& Sites() {
  static auto* sites = new std::vector<std::unique_ptr<ApiSite>>;
  return *sites;
}
bool installed = false;
HiddenApis hidden = HiddenApis::kNone;

// What stands in for a Python function's body (PyFunctionHook) or for an attribute of a class (ApiAttribute).
struct SiteObject {
  PyObject_HEAD ApiSite* site;
};
PyTypeObject *body_type = nullptr, *attribute_type = nullptr;
PyObject* trampoline = nullptr;  // code of (*args, **kwargs) -> marker(*args, **kwargs)
PyObject* trampoline_marker = nullptr;

PyCFunctionObject* AsFunction(PyObject* f) { return reinterpret_cast<PyCFunctionObject*>(f); }
PyMethodDescrObject* AsMethod(PyObject* f) { return reinterpret_cast<PyMethodDescrObject*>(f); }

// The entry of a method table that a hooked builtin function points to. The C function in it stays the original one,
// because hash and equality of builtin functions are made of it: dicts with torch functions as keys keep working.
struct HookedDefinition {
  PyMethodDef definition;
  ApiSite* site;
};

PyObject* CallOriginalBuiltin(ApiSite* site, PyObject* callable, PyObject* const* args, size_t nargsf,
                              PyObject* kwnames) {
  if (site->saved_vectorcall != nullptr) return site->saved_vectorcall(callable, args, nargsf, kwnames);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  Ref tuple(PyTuple_New(n));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(tuple.get(), i, args[i]);
  }
  Ref kwargs(kwnames != nullptr && PyTuple_GET_SIZE(kwnames) > 0 ? PyDict_New() : nullptr);
  if (!kwargs && PyErr_Occurred() != nullptr) return nullptr;
  for (Py_ssize_t i = 0; kwargs && i < PyTuple_GET_SIZE(kwnames); ++i) {
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]) != 0) return nullptr;
  }
  // tp_call goes on from the method table, not through the vectorcall that led here.
  return PyCFunction_Type.tp_call(callable, tuple.get(), kwargs.get());
}

PyObject* CallBuiltin(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  ApiSite* site = reinterpret_cast<HookedDefinition*>(AsFunction(callable)->m_ml)->site;
  CallArgs call;
  call.vector = args;
  call.count = PyVectorcall_NARGS(nargsf);
  call.names = kwnames;
  return RunHooked(site, call, [&] { return CallOriginalBuiltin(site, callable, args, nargsf, kwnames); });
}

bool PrepareBuiltin(ApiSite* site) {
  auto* f = AsFunction(site->function.get());
  site->saved_definition = f->m_ml;
  site->saved_vectorcall = f->vectorcall;
  auto* hooked = new HookedDefinition{*f->m_ml, site};
  // A flag that means nothing here keeps the interpreter's specialised instructions, which would call past us, from
  // applying.
  hooked->definition.ml_flags |= METH_COEXIST;
  site->hooked_definition = &hooked->definition;
  return true;
}

bool PrepareMethod(ApiSite* site) {
  PyMethodDef* def = AsMethod(site->function.get())->d_method;
  site->definition = *def;
  site->original = def->ml_meth;
  site->saved_definition = def;
  site->takes_self = true;
  site->definition.ml_meth = ClaimThunk(site, def->ml_flags);
  site->hooked_definition = &site->definition;
  return site->definition.ml_meth != nullptr;
}

void SwitchBuiltin(ApiSite* site, bool on) {
  auto* f = AsFunction(site->function.get());
  f->m_ml = on ? site->hooked_definition : site->saved_definition;
  f->vectorcall = on ? CallBuiltin : site->saved_vectorcall;
}

PyObject* NewSiteObject(PyTypeObject* type, ApiSite* site) {
  auto* object = PyObject_New(SiteObject, type);
  if (object != nullptr) object->site = site;
  return reinterpret_cast<PyObject*>(object);
}

// code.replace(**changes)
Ref ReplacedCode(PyObject* code, PyObject* changes) {
  Ref replace(PyObject_GetAttrString(code, "replace")), none(PyTuple_New(0));
  return replace && none ? Ref(PyObject_Call(replace.get(), none.get(), changes)) : Ref();
}

// The constants of the trampoline with `body` in the place of the marker.
Ref ConstantsWith(PyObject* body) {
  Ref consts(PyObject_GetAttrString(trampoline, "co_consts"));
  if (!consts) return Ref();
  const Py_ssize_t n = PyTuple_GET_SIZE(consts.get());
  Ref out(PyTuple_New(n));
  for (Py_ssize_t i = 0; out && i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(consts.get(), i);
    if (PyObject_RichCompareBool(item, trampoline_marker, Py_EQ) == 1) item = body;
    Py_INCREF(item);
    PyTuple_SET_ITEM(out.get(), i, item);
  }
  return out;
}

// A function with the original's code under another identity, and a code object that calls it.
bool PreparePython(ApiSite* site) {
  PyObject* f = site->function.get();
  auto* fields = reinterpret_cast<PyFunctionObject*>(f);
  site->saved_code = Ref::Borrow(fields->func_code);
  site->twin = Ref(PyFunction_New(fields->func_code, fields->func_globals));
  if (!site->twin) return false;
  auto* twin = reinterpret_cast<PyFunctionObject*>(site->twin.get());
  if (PyFunction_SetDefaults(site->twin.get(), fields->func_defaults != nullptr ? fields->func_defaults : Py_None) != 0)
    return false;
  if (fields->func_closure != nullptr && PyFunction_SetClosure(site->twin.get(), fields->func_closure) != 0)
    return false;
  Py_XINCREF(fields->func_kwdefaults);
  Py_XSETREF(twin->func_kwdefaults, fields->func_kwdefaults);
  Ref body(NewSiteObject(body_type, site));
  Ref consts(body ? ConstantsWith(body.get()) : Ref());
  Ref changes(PyDict_New());
  if (!consts || !changes || PyDict_SetItemString(changes.get(), "co_consts", consts.get()) != 0) return false;
  // Tracebacks, inspect.getsource() and the check of the closure's length look at these.
  for (const char* name : {"co_filename", "co_name", "co_firstlineno", "co_freevars"}) {
    Ref value(PyObject_GetAttrString(site->saved_code.get(), name));
    if (!value || PyDict_SetItemString(changes.get(), name, value.get()) != 0) return false;
  }
#if PY_VERSION_HEX >= 0x030b0000
  Ref qualname(PyObject_GetAttrString(site->saved_code.get(), "co_qualname"));
  if (!qualname || PyDict_SetItemString(changes.get(), "co_qualname", qualname.get()) != 0) return false;
#endif
  site->hooked_code = ReplacedCode(trampoline, changes.get());
  if (!site->hooked_code) return false;
  MarkTrampoline(site->hooked_code.get());
  if (!PyObject_HasAttrString(f, "__signature__") && !PyObject_HasAttrString(f, "__wrapped__")) {
    Ref inspect(PyImport_ImportModule("inspect"));
    site->signature = Ref(inspect ? PyObject_CallMethod(inspect.get(), "signature", "O", f) : nullptr);
    if (!site->signature) PyErr_Clear();
  }
  return true;
}

bool PrepareAttribute(ApiSite* site) {
  PyObject* dict =
      PyType_Check(site->owner.get()) ? reinterpret_cast<PyTypeObject*>(site->owner.get())->tp_dict : nullptr;
  site->owner_has_attribute = dict == nullptr || PyDict_Contains(dict, site->attr.get()) == 1;
  site->attribute = site->spec.stand_in ? site->spec.stand_in : Ref(NewSiteObject(attribute_type, site));
  PyObject* held = dict != nullptr ? PyDict_GetItem(dict, site->attr.get()) : nullptr;
  if (held != nullptr && site->attribute && !site->spec.stand_in &&
      (PyObject_TypeCheck(held, &PyStaticMethod_Type) || PyObject_TypeCheck(held, &PyClassMethod_Type))) {
    // The function has its class already, or wants none: an instance must not be bound to it.
    site->held = Ref::Borrow(held);
    site->attribute = Ref(PyStaticMethod_New(site->attribute.get()));
  }
  site->takes_self = false;
  return static_cast<bool>(site->attribute);
}

bool Prepare(ApiSite* site, bool in_place) {
  PyObject* f = site->function.get();
  if (in_place && PyCFunction_CheckExact(f)) {
    site->kind = SiteKind::kBuiltin;
    return PrepareBuiltin(site);
  }
  if (in_place && Py_IS_TYPE(f, &PyMethodDescr_Type)) {
    site->kind = SiteKind::kMethod;
    if (PrepareMethod(site)) return true;
  } else if (in_place && PyFunction_Check(f)) {
    site->kind = SiteKind::kPython;
    return PreparePython(site);
  }
  site->kind = SiteKind::kAttribute;
  return PrepareAttribute(site);
}

int SwitchPython(ApiSite* site, bool on) {
  PyObject* f = site->function.get();
  if (site->signature) {
    // inspect and torch.jit.script ask for the signature, which the stand-in code does not have.
    const int done =
        on ? PyObject_SetAttr(f, names.signature, site->signature.get()) : PyObject_DelAttr(f, names.signature);
    if (done != 0) PyErr_Clear();
  }
  return PyObject_SetAttr(f, names.code, (on ? site->hooked_code : site->saved_code).get());
}

void Switch(ApiSite* site, bool on) {
  if (std::exchange(site->on, on) == on) return;
  int failed = 0;
  switch (site->kind) {
    case SiteKind::kBuiltin: SwitchBuiltin(site, on); break;
    case SiteKind::kMethod:
      AsMethod(site->function.get())->d_method = on ? site->hooked_definition : site->saved_definition;
      break;
    case SiteKind::kPython: failed = SwitchPython(site, on); break;
    case SiteKind::kAttribute:
      if (on) {
        failed = PyObject_SetAttr(site->owner.get(), site->attr.get(), site->attribute.get());
      } else if (site->owner_has_attribute) {
        failed =
            PyObject_SetAttr(site->owner.get(), site->attr.get(), (site->held ? site->held : site->function).get());
      } else {
        failed = PyObject_DelAttr(site->owner.get(), site->attr.get());
      }
      break;
  }
  if (failed != 0) NoteSkip("a function could not be hooked", *site->base + ": " + TakeError());
}

bool IsWanted(const ApiSite& site) {
  if (site.spec.stays != nullptr && site.spec.stays()) return true;
  if (!installed) return false;
  if (site.spec.role == ApiRole::kWatch) return true;
  const bool op = site.spec.role == ApiRole::kRecord || site.spec.role == ApiRole::kCount;
  if (hidden == HiddenApis::kAll || (op && !rt().options.apis)) return false;
  return hidden == HiddenApis::kNone || site.kind == SiteKind::kBuiltin || site.kind == SiteKind::kMethod;
}

// In reverse when they are taken away, for one may stand on another.
void SwitchAll() {
  for (auto& site : Sites()) {
    if (IsWanted(*site)) Switch(site.get(), true);
  }
  for (auto it = Sites().rbegin(); it != Sites().rend(); ++it) {
    if (!IsWanted(**it)) Switch(it->get(), false);
  }
}

PyObject* CallBody(PyObject* self, PyObject* args, PyObject* kwargs) {
  ApiSite* site = reinterpret_cast<SiteObject*>(self)->site;
  if (site->spec.shortcut != nullptr) {
    PyObject* result = site->spec.shortcut(args);
    if (result != nullptr || PyErr_Occurred() != nullptr) return result;
  }
  CallArgs call;
  call.tuple = args;
  call.skip = site->spec.skip_self ? 1 : 0;
  call.kwargs = kwargs;
  return RunHooked(site, call, [&] { return PyObject_Call(site->twin.get(), args, kwargs); });
}

bool IsModuleAt(PyObject* args, Py_ssize_t position) {
  PyTypeObject* module = framework().types().module;
  return module != nullptr && PyTuple_GET_SIZE(args) > position &&
         PyType_IsSubtype(Py_TYPE(PyTuple_GET_ITEM(args, position)), module);
}

PyObject* CallAttribute(PyObject* self, PyObject* args, PyObject* kwargs) {
  ApiSite* site = reinterpret_cast<SiteObject*>(self)->site;
  // Bound methods outlive the hook.
  if (site->spec.instead && site->on) {
    Ref none(kwargs == nullptr ? PyDict_New() : nullptr);
    if (kwargs == nullptr && !none) return nullptr;
    return PyObject_CallFunctionObjArgs(site->spec.instead.get(), site->function.get(), args,
                                        kwargs != nullptr ? kwargs : none.get(), nullptr);
  }
  CallArgs call;
  call.tuple = args;
  call.skip = site->spec.skip_self ? 1 : 0;
  if (site->spec.skip_owner && IsModuleAt(args, call.skip)) ++call.skip;
  call.kwargs = kwargs;
  return RunHooked(site, call, [&] { return PyObject_Call(site->function.get(), args, kwargs); });
}

PyObject* BindAttribute(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

// help(), inspect and pickle see the function that is hooked.
PyObject* AttributeOf(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(reinterpret_cast<SiteObject*>(self)->site->function.get(), name);
}

int SetAttributeOf(PyObject* self, PyObject* name, PyObject* value) {
  PyObject* function = reinterpret_cast<SiteObject*>(self)->site->function.get();
  return value != nullptr ? PyObject_SetAttr(function, name, value) : PyObject_DelAttr(function, name);
}

PyObject* CompareAttribute(PyObject* a, PyObject* b, int op) {
  auto unwrapped = [](PyObject* o) {
    return Py_IS_TYPE(o, attribute_type) ? reinterpret_cast<SiteObject*>(o)->site->function.get() : o;
  };
  return PyObject_RichCompare(unwrapped(a), unwrapped(b), op);
}
Py_hash_t HashAttribute(PyObject* a) { return PyObject_Hash(reinterpret_cast<SiteObject*>(a)->site->function.get()); }

PyObject* ReduceAttribute(PyObject* self, PyObject*) {
  ApiSite* site = reinterpret_cast<SiteObject*>(self)->site;
  PyObject* getattr = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
  return Py_BuildValue("O(OO)", getattr, site->owner.get(), site->attr.get());
}

void DeallocSiteObject(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

bool MakeTrampoline() {
  // A float as the callee keeps the compiler from folding it away; the warning about calling a float is silenced.
  trampoline_marker = PyFloat_FromDouble(0.3819660112501051);
  Ref globals(PyDict_New());
  if (trampoline_marker == nullptr || !globals) return false;
  PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins());
  Ref run(
      PyRun_String("import warnings\n"
                   "with warnings.catch_warnings():\n"
                   "    warnings.simplefilter('ignore')\n"
                   "    exec('def call(*args, **kwargs): return 0.3819660112501051(*args, **kwargs)')\n"
                   "code = call.__code__\n",
                   Py_file_input, globals.get(), globals.get()));
  if (!run) return false;
  trampoline = PyDict_GetItemString(globals.get(), "code");
  Py_XINCREF(trampoline);
  return trampoline != nullptr;
}

}  // namespace

bool AddApi(PyObject* owner, PyObject* attr, const ApiSpec& spec, std::string* why) {
  auto site = std::make_unique<ApiSite>();
  site->owner = Ref::Borrow(owner);
  site->attr = Ref::Borrow(attr);
  site->function = Ref(PyObject_GetAttr(owner, attr));
  if (!site->function) {
    *why = TakeError();
    return false;
  }
  site->base = InternName(spec.base);
  site->counts = CountsOf(site->base);
  site->spec = spec;
  site->changes_arguments = spec.distributed || spec.fills || spec.writes || ChangesArguments(spec.base);
  if (!Prepare(site.get(), spec.in_place)) {
    *why = PyErr_Occurred() ? TakeError() : "not a function that can be hooked";
    return false;
  }
  if (IsWanted(*site)) Switch(site.get(), true);
  Sites().push_back(std::move(site));
  return true;
}

void InstallApis() {
  installed = true;
  SwitchAll();
}

void RemoveApis() {
  installed = false;
  SwitchAll();
}

bool RemoveApi(PyObject* owner, PyObject* attr) {
  auto& sites = Sites();
  const auto found = std::find_if(sites.rbegin(), sites.rend(), [&](const auto& site) {
    return site->owner.get() == owner && PyObject_RichCompareBool(site->attr.get(), attr, Py_EQ) == 1;
  });
  if (found == sites.rend()) return false;
  if (installed) Switch(found->get(), false);
  // Kept: calls may be running, and references to the hooked function may be anywhere.
  static auto* retired = new std::vector<std::unique_ptr<ApiSite>>;
  retired->push_back(std::move(*found));
  sites.erase(std::prev(found.base()));
  return true;
}

void HideApis(HiddenApis which) {
  if (std::exchange(hidden, which) != which) SwitchAll();
}

bool ApisInstalled() { return installed; }

size_t ApiCount() { return Sites().size(); }

bool InitApiTypes() {
  if (body_type != nullptr) return true;
  static PyType_Slot body_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(DeallocSiteObject)},
                                     {Py_tp_call, reinterpret_cast<void*>(CallBody)},
                                     {0, nullptr}};
  static PyType_Spec body_spec = {"msprobe._core.FunctionBody", sizeof(SiteObject), 0, Py_TPFLAGS_DEFAULT, body_slots};
  static PyMethodDef methods[] = {{"__reduce__", ReduceAttribute, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(DeallocSiteObject)},
                                {Py_tp_call, reinterpret_cast<void*>(CallAttribute)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(BindAttribute)},
                                {Py_tp_getattro, reinterpret_cast<void*>(AttributeOf)},
                                {Py_tp_setattro, reinterpret_cast<void*>(SetAttributeOf)},
                                {Py_tp_richcompare, reinterpret_cast<void*>(CompareAttribute)},
                                {Py_tp_hash, reinterpret_cast<void*>(HashAttribute)},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec spec = {"msprobe._core.HookedAttribute", sizeof(SiteObject), 0, Py_TPFLAGS_DEFAULT, slots};
  body_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&body_spec));
  attribute_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return body_type != nullptr && attribute_type != nullptr && MakeTrampoline();
}

}  // namespace msprobe
