#include "diagnose/story/origin_words.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>

#include "base/text.h"
#include "compare/describe/six_digits.h"
#include "diagnose/story/place_words.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// "eps (input.4)": the name that people know leads.
std::string ItemText(const StoryOrigin& o) { return o.argument.empty() ? o.item : o.argument + " (" + o.item + ")"; }

/// With six digits, where these show the difference.
std::string ShownValue(const StoryOrigin& o, const std::string& value) {
  return SixDigits(o.target) == SixDigits(o.golden) ? value : SixDigits(value);
}

/// Whether the whole value is one factor times the golden one.
bool IsMultiple(const StoryOrigin& o) {
  return o.anatomy && o.anatomy->kind == AnatomyKind::kFactor && o.anatomy->part.axis < 0 && o.anatomy->item == o.item;
}

/// "layers.1.mlp.weight"; where the module's name is a number, "weight of module 0 (Linear)".
std::string ParameterText(const Words& say, const StoryOrigin& o, const std::string& parameter) {
  const std::string module = Subject(say, o);
  const bool whole = parameter.find('.') != std::string::npos;
  if (o.module.empty() || o.recomputed || whole || module != o.module)
    return say({"{1} of {0}", "{}的 {}"}, module, parameter);
  return module + "." + parameter;
}

std::string Overflowed(const Words& say, const StoryOrigin& o) {
  switch (o.cause) {
    case Cause::kWeight:
      return say({"{} holds NaN or infinities", "{} 含有 NaN 或无穷大"},
                 ParameterText(say, o, o.parameter.empty() ? o.item : o.parameter));
    case Cause::kInput:
      return say({"its {} holds NaN or infinities that no recorded op made",
                  "{} 含有 NaN 或无穷大，且不由任何已采集的算子产生"},
                 ItemText(o));
    case Cause::kCollective:
      return say({"what every rank puts in is finite, the result is not", "各 rank 的输入均为有限值，结果却不是"});
    case Cause::kReceived: return say({"received from a rank whose dump is missing", "数据来自缺少 dump 的 rank"});
    case Cause::kUninitialised: return say({"it reads memory that was never written", "读取了从未写入的内存"});
    case Cause::kMask:
      if (!o.mechanism.empty()) return say.InLanguage(o.mechanism);
      return say({"it makes NaN of the -inf of a mask: a whole row may be masked",
                  "掩码中的 -inf 在此变成 NaN：可能整行都被掩掉"});
    case Cause::kArgument: return say({"one of its arguments is NaN or infinite", "有参数为 NaN 或无穷大"});
    default:
      if (!o.mechanism.empty()) return say.InLanguage(o.mechanism);
      return say({"its inputs are finite, its output is not", "输入均为有限值，输出却不是"});
  }
}

/// Of a mask, most likely.
std::string Hidden(const Words& say, const StoryOrigin& o) {
  if (o.argument == "mask")
    return say({"what comes of {} of {} differs: statistics do not show at which places it is true",
                "由 {1} 的 {0} 得出的结果不一致：统计值无法显示其为真的位置"},
               ItemText(o), o.op);
  return say({"what comes of {} of {} differs: it holds infinities, and statistics do not show at which places",
              "由 {1} 的 {0} 得出的结果不一致：其中含有无穷大，统计值无法显示其位置"},
             ItemText(o), o.op);
}

/// The numbers of "[2, 3]".
std::vector<int64_t> DimensionsOf(const std::string& shape) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(shape[i]))) continue;
    if (i == 0 || !std::isdigit(static_cast<unsigned char>(shape[i - 1]))) out.push_back(0);
    out.back() = out.back() * 10 + (shape[i] - '0');
  }
  return out;
}

std::string OfParameter(const Words& say, const StoryOrigin& o, const std::string& differs) {
  if (!o.copies.empty())
    return say({"the copies of its parameter {} on {} part: its gradient is not reduced, or they step otherwise",
                "参数 {} 在 {} 上的副本不再相同：其梯度未归约，或各自的更新不同"},
               o.parameter, Ranks(say, o.copies));
  if (!o.exchanged.empty())
    return say({"{} and {} are exchanged before they are used", "{} 与 {} 在使用前就已互换"},
               ParameterText(say, o, o.parameter), o.exchanged);
  if (o.parameter.empty())
    return say({"its {}, a parameter, {} before it is used", "参数 {} 在使用前就已{}"}, ItemText(o), differs);
  if (o.buffer)
    return say({"buffer {} {} before it is used", "缓冲区 {} 在使用前就已{}"}, ParameterText(say, o, o.parameter),
               differs);
  return say({"{} {} before it is used", "{} 在使用前就已{}"}, ParameterText(say, o, o.parameter), differs);
}

/// Of what the optimizer takes in.
std::string OfStep(const Words& say, const StoryOrigin& o) {
  if (o.item == "algorithm")
    return say({"the optimizer steps by {}, that of the golden run by {}", "优化器为 {}，标杆侧为 {}"}, o.target,
               o.golden);
  if (o.item == "parameters")
    return say(
        {"the optimizer updates {} parameters, that of the golden run {}", "优化器更新 {} 个参数，标杆侧更新 {} 个"},
        o.target, o.golden);
  if (o.item == "updates")
    return say({"parameters are updated {} times in one step, in the golden run {} times",
                "一步中参数更新 {} 次，标杆侧 {} 次"},
               o.target, o.golden);
  if (o.item == "decays")
    return say({"the optimizer decays {} parameters, that of the golden run {}",
                "优化器对 {} 个参数作权重衰减，标杆侧为 {} 个"},
               o.target, o.golden);
  if (o.item == "norms")
    return say({"gradients are clipped by the norm of {} of them, in the golden run of {}",
                "梯度按 {} 个梯度的范数裁剪，标杆侧为 {} 个"},
               o.target, o.golden);
  return say({"the optimizer takes its parameters in another order: one of shape {} where the golden run has {}",
              "优化器中参数的次序不同：此处的 shape 为 {}，标杆为 {}"},
             o.target, o.golden);
}

/// Of a tensor that only one run keeps in the graph.
std::string OfGradientFlow(const Words& say, const StoryOrigin& o) {
  constexpr std::string_view kParameters = "parameters.";
  const std::string item = o.item.starts_with(kParameters) ? o.item.substr(kParameters.size()) : ItemText(o);
  if (o.target == "False")
    return say({"its {} requires no gradient, in the golden run it does", "{} 不需要梯度，标杆侧则需要"}, item);
  return say({"its {} requires a gradient, in the golden run it does not", "{} 需要梯度，标杆侧则不需要"}, item);
}

/// Of an op that one run has more.
std::string OfLoneOp(const Words& say, const StoryOrigin& o) {
  if (o.of_step && o.cause == Cause::kExtraOp)
    return say(
        {"a step of the optimizer was recorded, in the golden run none was: it does not step, or by functions for "
         "lists, which are not recorded",
         "采集到优化器的更新，标杆侧没有：标杆侧未执行更新，或使用了不采集的列表函数"});
  if (o.of_step)
    return say(
        {"no step of the optimizer was recorded, that of the golden run was: it does not step, or by functions for "
         "lists, which are not recorded",
         "没有采集到优化器的更新，标杆侧有：优化器未执行更新，或使用了不采集的列表函数"});
  if (o.cause == Cause::kExtraOp) {
    if (!o.parameter.empty())
      return say({"the optimizer updates {}, that of the golden run does not", "优化器更新了 {}，标杆侧未更新"},
                 o.parameter);
    if (o.clips)
      return say({"only the target clips its gradients by their norm ({})", "仅调试侧按范数裁剪梯度（{}）"}, o.op);
    if (!o.instead.empty())
      return say({"the target calls {} where the golden run calls {}", "调试侧调用 {}，标杆侧调用 {}"}, o.op,
                 o.instead);
    return say({"the golden run has no {}", "标杆侧没有 {}"}, o.op);
  }
  if (!o.parameter.empty()) return say({"the optimizer does not update {}", "优化器未更新 {}"}, o.parameter);
  if (o.clips)
    return say({"only the golden run clips its gradients by their norm ({})", "仅标杆侧按范数裁剪梯度（{}）"}, o.op);
  if (!o.instead.empty())
    return say({"the target calls {} where the golden run calls {}", "调试侧调用 {}，标杆侧调用 {}"}, o.instead, o.op);
  return say({"the target lacks {}", "调试侧缺少 {}"}, o.op);
}

/// Of what came in.
std::string OfInput(const Words& say, const StoryOrigin& o, const std::string& differs) {
  if (o.hidden) return Hidden(say, o);
  if (!o.exchanged_input.empty())
    return say({"its {} and {} are exchanged", "{} 与 {} 互换"}, ItemText(o), o.exchanged_input);
  if (o.reordered)
    return say({"its {} holds the same values in other places, by its statistics, and no recorded op moved them",
                "从统计值看，{} 的数值相同而位置不同，且没有任何已采集的算子移动它们"},
               ItemText(o));
  if (!o.other_op.empty())
    return say({"its {} {}, as {} makes it", "{} {}，由 {} 产生"}, ItemText(o), differs, o.other_op);
  if (!o.made_by.empty() && !o.golden_made_by.empty())
    return say({"its {} is what {} gives, in the golden run what {} gives", "{} 是 {} 的输出，标杆侧则是 {} 的输出"},
               ItemText(o), o.made_by, o.golden_made_by);
  if (o.kept)
    return say({"its {}, which the optimizer keeps from step to step, {}", "优化器在各 step 间保留的 {} {}"},
               ItemText(o), differs);
  if (o.gradient)
    return say({"its {}, a gradient, {}, and no recorded op made it", "{}（梯度）{}，且不由任何已采集的算子产生"},
               ItemText(o), differs);
  if (!o.made_by.empty())
    return say(
        {"its {} {}: {} made it, in the golden run no recorded op", "{} {}：由 {} 产生，标杆侧没有已采集的算子产生它"},
        ItemText(o), differs, o.made_by);
  if (!o.golden_made_by.empty())
    return say({"its {} {}: no recorded op made it, in the golden run {} did",
                "{} {}：没有已采集的算子产生它，标杆侧由 {} 产生"},
               ItemText(o), differs, o.golden_made_by);
  return say({"its {} {}, and no recorded op made it", "{} {}，且不由任何已采集的算子产生"}, ItemText(o), differs);
}

std::string WhatHappened(const Words& say, const StoryOrigin& o) {
  // Where the comparison saw it, its words say more than that something is not finite.
  if (o.overflow && o.what.empty()) {
    const std::string what = Overflowed(say, o);
    return o.unused ? say({"an infinity that nothing uses: {}", "产生的无穷大未被使用：{}"}, what) : what;
  }
  const std::string differs =
      o.reordered
          ? say({"holds the same values in other places, by its statistics", "（从统计值看数值相同而位置不同）不一致"})
          : Differs(say, o);
  switch (o.cause) {
    case Cause::kOp:
      if (IsGradient(o))
        return say({"the gradient of its {} {}, what leads to it agrees", "其来源一致，参数 {} 的梯度却{}"}, o.item,
                   differs);
      if (o.other_call)
        return say({"its {} {}, and nothing in front of it does; it takes other arguments in the two runs",
                    "{} {}，此前均一致；两次运行中它的参数不同"},
                   o.item, differs);
      return say({"its {} {} although its inputs agree", "输入一致，{} 却{}"}, o.item, differs);
    case Cause::kCollective:
      return say(
          {"the result of the call {} although what its ranks put in agrees", "各 rank 的输入一致，通信结果却{}"},
          differs);
    case Cause::kReceived:
      return say(
          {"what it receives {}, and no dump of the sender shows why", "收到的数据{}，发送方没有可说明原因的 dump"},
          differs);
    case Cause::kWeight: return OfParameter(say, o, differs);
    case Cause::kInput: return OfInput(say, o, differs);
    case Cause::kCode:
      if (o.hidden) return Hidden(say, o);
      return say({"code between its recorded ops makes a difference: {} of {} {}",
                  "其已采集算子之间的代码造成差异：{1} 的 {0} {2}"},
                 o.item, o.op, differs);
    case Cause::kArgument:
      if (o.of_step) return OfStep(say, o);
      if (o.what == "requires_grad") return OfGradientFlow(say, o);
      if (o.target.empty()) return say({"argument {} {}", "参数 {} {}"}, ItemText(o), differs);
      return say({"argument {} is {}, in the golden run {}", "参数 {} 为 {}，标杆为 {}"}, ItemText(o),
                 ShownValue(o, o.target), ShownValue(o, o.golden)) +
             (o.more_calls > 0 ? say({", and in {} more calls", "，另有 {} 次调用也不同"}, o.more_calls)
                               : std::string());
    case Cause::kMissingOp:
    case Cause::kExtraOp: return OfLoneOp(say, o);
    case Cause::kShape:
      if (!IsSplit(o) || o.alone) {
        const std::string tells = o.alone ? ShapesTell(say, o) : std::string();
        return say({"{} has shape {}, in the golden run {}", "{} 的 shape 为 {}，标杆为 {}"}, ItemText(o), o.target,
                   o.golden) +
               (tells.empty() ? std::string() : std::string(say.colon()) + tells);
      }
      return say({"{} has shape {}, in the golden run {}: the runs are split or sized differently",
                  "{} 的 shape 为 {}，标杆为 {}：两次运行的切分或大小不同"},
                 o.item, o.target, o.golden);
    case Cause::kDType:
      return say({"{} is {}, in the golden run {}", "{} 为 {}，标杆为 {}"}, o.item, o.target, o.golden);
    case Cause::kGrows:
      if (!o.parameter.empty())
        return say({"rounding is amplified by the optimizer: its parameter {} {}, the steps before only rounded",
                    "优化器放大了舍入误差：参数 {} {}，此前的 step 仅有舍入差异"},
                   o.parameter, differs);
      return say({"small differences add up from op to op, no op stands out", "误差逐算子累积，没有哪个算子明显突出"});
    case Cause::kDraw: return say({"{} drew other random numbers", "{} 抽取了不同的随机数"}, o.op);
    case Cause::kUninitialised:
    case Cause::kMask: return Overflowed(say, o);
  }
  return differs;
}

/// Whether what happened has the parameter or op by its whole name.
bool NamesItself(const StoryOrigin& o) {
  if (o.of_step) return true;
  if (o.cause == Cause::kMissingOp || o.cause == Cause::kExtraOp) return o.module.empty() && o.parameter.empty();
  if (o.cause != Cause::kWeight || !o.copies.empty()) return false;
  return (o.overflow && o.what.empty()) || !o.parameter.empty();
}

}  // namespace

std::string Size(const StoryOrigin& o) {
  return o.percent >= 0 && std::isfinite(o.percent) ? fmt::format("{:.3g} %", o.percent) : "";
}

bool HasValues(const StoryOrigin& o) { return !o.what.empty() && !o.target.empty() && o.what != "checksum"; }

std::string Differs(const Words& say, const StoryOrigin& o) {
  const std::string size = Size(o);
  if (!HasValues(o)) {
    if (!size.empty()) return say({"differs by {}", "相差 {}"}, size);
    return o.what == "checksum" ? say({"differs (checksums)", "不一致（校验和不同）"}) : say({"differs", "不一致"});
  }
  const std::string target = SixDigits(o.target), golden = SixDigits(o.golden);
  if (IsMultiple(o))
    return say({"is {:.4g} times the golden value ({} {}, golden {})", "为标杆值的 {:.4g} 倍（{} 为 {}，标杆为 {}）"},
               o.anatomy->number, o.what, target, golden);
  if (size.empty()) return say({"differs ({} {}, golden {})", "不一致（{} 为 {}，标杆为 {}）"}, o.what, target, golden);
  return say({"differs by {} ({} {}, golden {})", "相差 {}（{} 为 {}，标杆为 {}）"}, size, o.what, target, golden);
}

std::string ShapesTell(const Words& say, const StoryOrigin& o) {
  // The dimensions of a weight are no batch, nor are those of what an optimizer steps.
  const bool steps = ApiOf(o.op).ends_with('_') || StartsWith(ApiOf(o.op), "_foreach_");
  if (o.argument == "weight" || o.argument == "bias" || !o.parameter.empty() || steps) return {};
  std::vector<int64_t> a = DimensionsOf(o.target), b = DimensionsOf(o.golden);
  if (a.size() != b.size() || a.size() < 2) return {};
  const bool first = a[0] != b[0], rest = std::equal(a.begin() + 1, a.end(), b.begin() + 1);
  const bool second = a[1] != b[1], tail = std::equal(a.begin() + 2, a.end(), b.begin() + 2);
  if (first && rest) return say({"another batch size, or other micro batches", "batch size 或 micro batch 不同"});
  if (!first && second && tail) return say({"another sequence length, or other padding", "序列长度或填充不同"});
  std::ranges::sort(a);
  std::ranges::sort(b);
  if (a == b) return say({"the same dimensions in another order", "维度相同而顺序不同"});
  return first && second && tail ? say({"another batch", "输入批次不同"}) : std::string();
}

std::string OriginText(const Words& say, const StoryOrigin& o) {
  std::string out = WhatHappened(say, o);
  if (!NamesItself(o)) out = Subject(say, o) + std::string(say.colon()) + out;
  const std::string run = RunPlace(say, o);
  return run.empty() ? out : say({"{} ({})", "{}（{}）"}, out, run);
}

}  // namespace msprobe
