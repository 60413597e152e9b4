#include "bindings/torch/module_call.h"

#include <algorithm>

#include "bindings/backward/node_hook.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/identity.h"
#include "bindings/torch/param_hook.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

// Hooks of the calls that ended inside the caller of the innermost call; without one, of the last.
OutputHooks& HooksAround() {
  auto& outermost = PerThread<OutputHooks>();
  auto& calls = OpenCalls();
  if (calls.size() > 1) return calls[calls.size() - 2].output_hooks;
  if (outermost.size() > 1) outermost.erase(outermost.begin(), outermost.end() - 1);
  return outermost;
}

Ref FindOutputHook(const OutputHooks& hooks, uint64_t sequence) {
  const auto known = std::find_if(hooks.rbegin(), hooks.rend(), [&](const auto& h) { return h.first == sequence; });
  return known == hooks.rend() ? Ref() : known->second;
}

// The gradient of a single output is told by its producer, so that the output stays as it is.
void HookSingleOutput(OpenCall* call, const GradEdge& edge) {
  const auto& inputs = call->backward->inputs();
  const auto input = std::find(inputs.begin(), inputs.end(), edge);
  const bool passes_through = input != inputs.end();
  if (passes_through) call->backward->SetPassesThrough(static_cast<size_t>(input - inputs.begin()));
  // Other modules may have returned this tensor: one of our own, or the one that gave it to us.
  const uint64_t sequence = SequenceOf(edge.node.get());
  OutputHooks& siblings = HooksAround();
  Ref hook = FindOutputHook(call->output_hooks, sequence);
  if (!hook && passes_through) hook = FindOutputHook(siblings, sequence);
  if (hook && sequence != kNoSequence) {
    AddOuterModule(hook.get(), call->backward, edge.number);
  } else {
    hook = Ref(NewOutputHook(call->backward, edge.number, sequence));
    Ref handle(hook ? PyObject_CallMethodOneArg(edge.node.get(), torch_names.register_prehook, hook.get()) : nullptr);
    if (!handle) {
      NoteSkip("the backward of a module could not be hooked", call->name.str() + ": " + TakeError());
      return;
    }
    SetHandle(hook.get(), handle.get());
  }
  siblings.emplace_back(sequence, std::move(hook));
}

// Each of several outputs gets a node of its own, a view: its producer may use it within the module, too, as attention
// does its weights. That changes no bits, for uses from outside come first in the backward pass. An output that is an
// input stays as it is, because there they do not.
PyObject* HookSeveralOutputs(OpenCall* call, PyObject* output, const std::vector<PyObject*>& tensors,
                             const std::vector<GradEdge>& edges) {
  ModuleBackward& backward = *call->backward;
  const auto& inputs = backward.inputs();
  backward.SetOutputs(tensors.size(), NextSequence());
  std::vector<PyObject*> replaced;
  std::vector<Ref> views;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (std::find(inputs.begin(), inputs.end(), edges[i]) != inputs.end()) continue;
    Ref view(PyObject_CallMethodOneArg(tensors[i], torch_names.view_as, tensors[i]));
    Ref node(view ? PyObject_GetAttr(view.get(), torch_names.grad_fn) : nullptr);
    Ref hook(node && node.get() != Py_None ? NewOneOutputHook(call->backward, i, SequenceOf(node.get())) : nullptr);
    Ref handle(hook ? PyObject_CallMethodOneArg(node.get(), torch_names.register_prehook, hook.get()) : nullptr);
    if (!handle) return nullptr;
    replaced.push_back(tensors[i]);
    views.push_back(std::move(view));
  }
  return replaced.empty() ? nullptr : ReplaceTensors(output, replaced, views);
}

}  // namespace

std::vector<OpenCall>& OpenCalls() { return PerThread<std::vector<OpenCall>>(); }

void SetInputs(OpenCall* call, PyObject* args) {
  std::vector<PyObject*> tensors;
  CollectGradTensors(args, &tensors);
  if (!torch_objects().Grad()) tensors.clear();
  call->backward = std::make_shared<ModuleBackward>(
      OpName{call->site->base, call->name.index, NameForm::kModuleBackward}, tensors.empty() ? 0 : NextSequence());
  call->backward->SetInputs(tensors);
}

PyObject* HookBackward(OpenCall* call, PyObject* output) {
  std::vector<PyObject*> tensors;
  CollectGradTensors(output, &tensors);
  if (tensors.empty() || !torch_objects().Grad()) return nullptr;
  std::vector<GradEdge> edges;
  for (PyObject* tensor : tensors) edges.push_back(EdgeOf(tensor));
  PyObject* replaced = nullptr;
  if (tensors.size() == 1) {
    if (edges[0].node) HookSingleOutput(call, edges[0]);
  } else {
    replaced = HookSeveralOutputs(call, output, tensors, edges);
    if (PyErr_Occurred()) {
      NoteSkip("the backward of a module could not be hooked", call->name.str() + ": " + TakeError());
    }
  }
  call->backward->HookInputEdges(edges);
  const GraphWalk& walk = GraphWalk::OfThread();
  for (const KnownParam& known : call->site->params.known) {
    if (known.accumulator) SetParamHookSequence(known.hook.get(), walk.LastUser(known.accumulator.get()));
  }
  return replaced;
}

}  // namespace msprobe
