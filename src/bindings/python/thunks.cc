#include "bindings/python/thunks.h"

#include <array>
#include <utility>

#include "bindings/python/api_call.h"

namespace msprobe {
namespace {

// A C function carries no data, so there is one function per hooked function: enough for all of PyTorch's API.
constexpr size_t kKeywordThunks = 1536, kNoArgThunks = 384, kOtherThunks = 64;

template <size_t N>
struct Pool {
  std::array<ApiSite*, N> sites{};
  size_t used = 0;
};
Pool<kKeywordThunks> keywords;
Pool<kNoArgThunks> no_args;
Pool<kOtherThunks> one_arg, varargs, fast, fast_keywords;

PyObject* RunKeywords(ApiSite* site, PyObject* self, PyObject* args, PyObject* kwargs) {
  CallArgs call;
  call.self = site->takes_self ? self : nullptr;
  call.tuple = args;
  call.kwargs = kwargs;
  auto original = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(site->original));
  return RunHooked(site, call, [&] { return original(self, args, kwargs); });
}

PyObject* RunPlain(ApiSite* site, PyObject* self, PyObject* args, bool is_tuple) {
  CallArgs call;
  call.self = site->takes_self ? self : nullptr;
  if (is_tuple) {
    call.tuple = args;
  } else if (args != nullptr) {
    call.vector = &args;
    call.count = 1;
  }
  return RunHooked(site, call, [&] { return site->original(self, args); });
}

PyObject* RunFast(ApiSite* site, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames,
                  bool with_names) {
  CallArgs call;
  call.self = site->takes_self ? self : nullptr;
  call.vector = args;
  call.count = n;
  call.names = kwnames;
  auto raw = reinterpret_cast<void (*)()>(site->original);
  return RunHooked(site, call, [&] {
    using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
    using FastKeywords = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
    return with_names ? reinterpret_cast<FastKeywords>(raw)(self, args, n, kwnames)
                      : reinterpret_cast<Fast>(raw)(self, args, n);
  });
}

template <size_t I>
PyObject* KeywordThunk(PyObject* self, PyObject* args, PyObject* kwargs) {
  return RunKeywords(keywords.sites[I], self, args, kwargs);
}
template <size_t I>
PyObject* NoArgThunk(PyObject* self, PyObject* nothing) {
  return RunPlain(no_args.sites[I], self, nothing, false);
}
template <size_t I>
PyObject* OneArgThunk(PyObject* self, PyObject* arg) {
  return RunPlain(one_arg.sites[I], self, arg, false);
}
template <size_t I>
PyObject* VarargsThunk(PyObject* self, PyObject* args) {
  return RunPlain(varargs.sites[I], self, args, true);
}
template <size_t I>
PyObject* FastThunk(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  return RunFast(fast.sites[I], self, args, n, nullptr, false);
}
template <size_t I>
PyObject* FastKeywordThunk(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return RunFast(fast_keywords.sites[I], self, args, n, kwnames, true);
}

template <typename F>
PyCFunction AsCFunction(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

#define MSP_THUNK_TABLE(table, thunk, count)                 \
  template <size_t... I>                                     \
  constexpr auto Make##table(std::index_sequence<I...>) {    \
    using Function = decltype(&thunk<0>);                    \
    return std::array<Function, sizeof...(I)>{&thunk<I>...}; \
  }                                                          \
  const auto table = Make##table(std::make_index_sequence<count>{})
MSP_THUNK_TABLE(kKeyword, KeywordThunk, kKeywordThunks);
MSP_THUNK_TABLE(kNoArg, NoArgThunk, kNoArgThunks);
MSP_THUNK_TABLE(kOneArg, OneArgThunk, kOtherThunks);
MSP_THUNK_TABLE(kVarargs, VarargsThunk, kOtherThunks);
MSP_THUNK_TABLE(kFast, FastThunk, kOtherThunks);
MSP_THUNK_TABLE(kFastKeyword, FastKeywordThunk, kOtherThunks);
#undef MSP_THUNK_TABLE

template <size_t N, typename Table>
PyCFunction Claim(Pool<N>* pool, const Table& table, ApiSite* site) {
  if (pool->used == N) return nullptr;
  pool->sites[pool->used] = site;
  return AsCFunction(table[pool->used++]);
}

}  // namespace

PyCFunction ClaimThunk(ApiSite* site, int flags) {
  switch (flags & ~(METH_STATIC | METH_CLASS | METH_COEXIST)) {
    case METH_VARARGS | METH_KEYWORDS: return Claim(&keywords, kKeyword, site);
    case METH_VARARGS: return Claim(&varargs, kVarargs, site);
    case METH_NOARGS: return Claim(&no_args, kNoArg, site);
    case METH_O: return Claim(&one_arg, kOneArg, site);
    case METH_FASTCALL: return Claim(&fast, kFast, site);
    case METH_FASTCALL | METH_KEYWORDS: return Claim(&fast_keywords, kFastKeyword, site);
    default: return nullptr;
  }
}

}  // namespace msprobe
