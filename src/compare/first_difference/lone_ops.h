// Ops that only one of two runs has, at their places in the walk over both.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compare/first_difference/rewrites.h"
#include "compare/first_difference/walk_types.h"

namespace msprobe {

/// An op that one run has more, at its place among the target's ops.
struct Lone {
  bool golden = false;
  uint32_t op = 0;
  size_t before = 0;  // target ops in front of it
  bool moves = false;
  bool known = false;  // as a rewrite, from a module that agrees
  std::string_view parent;
};

/// The one function that the other run calls in the module around `op`, where `op` is the only one that its run has
/// more there; "" where there is none. `golden`: `op` is of the golden run.
std::string StandsFor(const DumpPair& pair, const MatchPlan& plan, const ModuleTree& target,
                      const ModuleTree& golden_tree, std::string_view op, bool golden);

class LoneOps {
 public:
  /// Both outlive the object.
  LoneOps(const WalkInput& in, Rewrites* rewrites) : in_(in), ops_(in.pair.target->ops()), rewrites_(*rewrites) {}

  void Add(bool golden, uint32_t op, size_t before);
  /// Notes the modules around an op of another form, which that run has.
  void AddReplaced(std::string_view op, bool golden);
  /// In the order of Add(), without those inside of what agrees.
  const BigArray<Lone>& all() const { return lone_; }

  /// The op that only one run has and that explains the difference at `i`: it stands right in front of it, or in the
  /// module that differs.
  const Lone* Before(FirstDifference::Kind kind, size_t i) const;
  /// The first module with parameters that only one run has and around which nothing agrees.
  const Lone* FirstOwnModule() const;
  /// The last communication before `i` that only one run has and that holds a tensor of the shape of an input of `i`:
  /// what it brings is written in place, and may be read much later.
  const Lone* Exchange(size_t i) const;
  /// A communication that one run has more between two backward passes that add up the gradient `i` of a parameter:
  /// what it writes is added to.
  const Lone* ExchangeOfGradient(size_t i) const;
  /// Of the backward call `i` its own forward call, where one run has that one more.
  std::optional<Lone> ForwardOf(size_t i) const;
  /// Whether the other run has ops of its own where this one is called.
  bool IsReplaced(const Lone& own) const;
  /// Behind an op that drew other random numbers all differs, but not which functions are called.
  const Lone* FirstBehindDraw(size_t op) const;
  /// One around which all agrees, and in whose place the other run has nothing. Dumps of modules do not show that.
  const Lone* FirstWithoutEffect() const;
  /// Ops whose results no other form of the same explains: what changes its argument, wherever it stands, and what
  /// stands where the runs do not agree.
  const std::vector<uint32_t>& makers(bool golden) const { return makers_[golden]; }
  /// Whether it is of a module's call that only one run has, as where a part of the forward pass runs again.
  bool IsInLoneCall(const Lone& lone) const { return Outermost(lone) != lone.op; }
  /// Makes `found` say that one run lacks the op, or the outermost module around it that it lacks.
  void Set(const Lone& lone, FirstDifference* found) const;

 private:
  struct OwnModule {
    Lone lone;
    bool covered = false;  // something around it agrees
  };
  /// The last lone communication in front of op `i` that holds a tensor of one of the shapes; `begin`: not before it.
  const Lone* LastOfShape(const std::vector<std::string>& shapes, size_t begin, size_t i) const;
  /// Shapes of the tensors of an op, its results or what it starts from.
  std::vector<std::string> ShapesOf(size_t i, bool results) const;
  /// As Before(), of two frameworks: only a function that computes something, in the module of `i`, for whose absence
  /// nothing of the other run makes up.
  const Lone* BeforeAcross(FirstDifference::Kind kind, size_t i) const;
  /// The nearest module around an op that both runs have, by its name in the target; "" for the top.
  std::string_view HomeOf(bool golden, std::string_view op) const;
  bool IsPartOfOtherClass(const Lone& own) const;
  /// Functions that the two runs call at other places of one module, with the same result.
  void FindMoved();
  uint32_t Outermost(const Lone& lone) const;
  /// The forward call of a backward one, where the other run lacks it, too; else the op itself.
  uint32_t CalledBefore(bool golden, uint32_t op) const;
  const Lone* FirstOfGroup(size_t k) const;
  const DumpFile& DumpOf(bool golden) const { return golden ? *in_.pair.golden : *in_.pair.target; }
  const ModuleTree& TreeOf(bool golden) const { return golden ? in_.golden_tree : in_.target_tree; }

  const WalkInput& in_;
  const OpList& ops_;
  Rewrites& rewrites_;
  BigArray<Lone> lone_;
  std::vector<OwnModule> own_modules_;
  bool sought_moved_ = false;
  std::unordered_set<uint32_t> moved_[2];  // of the target, of the golden run
  std::vector<uint32_t> makers_[2];
  mutable std::unordered_map<uint32_t, uint32_t> target_of_;  // modules, by golden op; made when it is asked for
  TextIds replaced_[2];  // modules in which that run has other ops; "" is what no module calls
};

}  // namespace msprobe
