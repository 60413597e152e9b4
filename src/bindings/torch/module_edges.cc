#include "bindings/torch/module_edges.h"

#include <vector>

#include "bindings/backward/graph_walk.h"
#include "bindings/python/py.h"
#include "bindings/torch/autograd_graph.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

// Of its own, not GraphWalk::OfThread(): that one's hooks are the recorder's.
struct EdgeWalk {
  GraphWalk walk;
};

std::vector<GradEdge> EdgesOf(const nb::list& tensors) {
  std::vector<GradEdge> edges;
  for (const nb::handle tensor : tensors) edges.push_back(EdgeOf(tensor.ptr()));
  return edges;
}

// [(node, number among the node's gradients, index of the input)]
nb::list InputEdges(const nb::list& outputs, uint64_t since, const nb::list& inputs) {
  std::vector<InputEdge> found;
  PerThread<EdgeWalk>().walk.FindEdges(EdgesOf(outputs), since, EdgesOf(inputs), &found);
  nb::list out;
  for (const InputEdge& edge : found) out.append(nb::make_tuple(nb::borrow(edge.node), edge.slot, edge.input));
  return out;
}

}  // namespace

void BindModuleEdges(nb::module_& m) {
  m.def("next_sequence", &NextSequence, "The number that autograd gives the next node of this thread.");
  m.def("input_edges", &InputEdges, nb::arg("outputs"), nb::arg("since"), nb::arg("inputs"),
        "(node, gradient, input) of each edge from the nodes behind outputs, not older than since, to an input.");
  m.def(
      "forget_edges", [] { PerThread<EdgeWalk>().walk.Forget(); }, "Lets go of the graph that input_edges() has seen.");
}

}  // namespace msprobe
