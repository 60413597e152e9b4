// The story in the words of both languages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "base/words/times_text.h"
#include "compare/describe/six_digits.h"
#include "compare/values/item_view.h"
#include "diagnose/story/clean_words.h"
#include "diagnose/story/origin_words.h"
#include "diagnose/story/phrases.h"
#include "diagnose/story/place_words.h"
#include "diagnose/story/story.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kListed = kMostListed;  // origins and hand-overs that a line or a text names

/// What is said of each cause whatever it is the cause of.
struct CauseWords {
  Phrase brief;  // what made it
  Phrase next;   // what to do
};

constexpr CauseWords WordsOf(Cause cause) {
  switch (cause) {
    case Cause::kOp:
      return {{"the op itself makes it: its inputs agree", "由该算子自身产生：输入一致"},
              {"replay the op by itself (--repro)", "单独重放该算子（--repro）"}};
    case Cause::kCollective:
      return {{"the call itself makes it: what its ranks put in agrees", "由通信自身产生：各 rank 的输入一致"},
              {"check the communication library, its reduction order and its dtype", "检查通信库、归约顺序及其 dtype"}};
    case Cause::kReceived:
      return {{"it comes from other ranks", "来自其他 rank"},
              {"add the dumps of the other ranks", "补充其他 rank 的 dump"}};
    case Cause::kWeight:
      return {{"a parameter differs before it is used", "参数在使用前就已不一致"},
              {"compare the checkpoints, the initialisation and the optimizer steps before it",
               "比对两侧的权重文件、初始化以及此前的优化器更新"}};
    case Cause::kInput:
      return {{"it comes in here, and no recorded op made it", "在此处传入，且不由任何已采集的算子产生"},
              {"compare what comes in: the batch and its order, or a value that the model's own code makes",
               "比对传入的内容：输入数据及其顺序，或模型自身代码产生的值"}};
    case Cause::kCode:
      return {{"code between the recorded ops makes it", "由已采集算子之间的代码产生"},
              {"read that code; level mix and risk_level ALL record more of it",
               "查看这段代码；使用 mix 级别和 risk_level ALL 可采集到更多内容"}};
    case Cause::kArgument:
      return {{"an argument of the call differs", "调用参数不一致"},
              {"compare the configurations of both runs", "比对两次运行的配置"}};
    case Cause::kMissingOp:
      return {{"the target lacks this op", "调试侧缺少该算子"},
              {"compare the code of both runs at this place", "比对两次运行在此处的代码"}};
    case Cause::kExtraOp:
      return {{"the golden run has no such op", "标杆侧没有该算子"},
              {"compare the code of both runs at this place", "比对两次运行在此处的代码"}};
    case Cause::kShape:
      return {{"the runs are split or sized differently", "两次运行的切分或大小不同"},
              {"compare the configurations; merge the ranks of two layouts first (--rank_size)",
               "比对两次运行的配置；若并行切分不同，先合并各 rank（--rank_size）"}};
    case Cause::kDType:
      return {{"only the dtype differs", "仅 dtype 不同"},
              {"compare the precision settings of both runs", "比对两次运行的精度设置"}};
    case Cause::kGrows:
      return {{"it adds up from op to op, none stands out", "误差逐算子累积，没有哪个算子明显突出"},
              {"dump tensors, or compare with two golden runs (calibration)",
               "采集 tensor 数据，或使用两次标杆运行进行校准"}};
    case Cause::kDraw:
      return {{"the runs drew other random numbers", "两次运行抽取了不同的随机数"},
              {"seed both runs alike (seed_all), or switch dropout off in both, and record again",
               "使两次运行的随机种子一致（seed_all），或在两侧都关闭 dropout，再重新采集"}};
    case Cause::kUninitialised:
      return {{"memory that was never written is read", "读取了从未写入的内存"},
              {"write the buffer before it is read", "在读取前写入该缓冲区"}};
    case Cause::kMask:
      return {{"NaN is made of the -inf of a mask", "掩码中的 -inf 在此变成 NaN"},
              {"leave each row at least one place that is not masked, or put zeros for such rows behind the softmax",
               "让每一行至少留一个未被掩掉的位置，或在 softmax 之后把这些行置零"}};
  }
  return {};
}

/// What to do next where it is known how the value is wrong.
std::string AdviceOfAnatomy(const Words& say, const StoryOrigin& o) {
  if (o.anatomy->kind == AnatomyKind::kAccumulated)
    return say({"look at where the gradients are cleared (zero_grad), and after how many micro batches",
                "检查梯度在何处清零（zero_grad），以及多少个 micro batch 之后清零"});
  if (o.anatomy->kind == AnatomyKind::kClipped && o.cause == Cause::kInput)
    return say({"look at what cuts it off, as clipping of gradients does (clip_grad_value_)",
                "检查截断它的代码，例如梯度裁剪（clip_grad_value_）"});
  const bool of_step = o.anatomy->kind == AnatomyKind::kStale && o.anatomy->source.starts_with("step ");
  if (of_step && o.cause == Cause::kInput && !o.gradient && !o.kept)
    return say({"look at what brings the data of a step: a loader that begins again, a batch that is not fetched anew",
                "检查每个 step 的数据来源：被重新开始的 loader，或未重新取出的 batch"});
  if (of_step)
    return say(
        {"look at what should have changed it after that step: which parameters the optimizer was given, and "
         "which of them require gradients",
         "检查此后本应更新它的代码：传给优化器的参数，以及其中哪些需要梯度"});
  if (o.anatomy->kind == AnatomyKind::kStale)
    return say({"compare what is read here: the names in the checkpoint, and the order of the layers",
                "比对此处读取的内容：权重文件中的名称，以及各层的顺序"});
  return {};
}

/// What to do next where it is known how the value is wrong; "" where that says nothing of it.
std::string AdviceOfForm(const Words& say, const StoryOrigin& o) {
  if (!o.exchanged_input.empty() || (!o.made_by.empty() && !o.golden_made_by.empty()))
    return say({"compare how this call is made in both runs", "比对两次运行中这一调用的写法"});
  if (o.reordered)
    return say(
        {"look at what orders it: a transpose, a flip, an index, the order of a batch; dump tensors to see the places",
         "检查决定其顺序的代码：转置、翻转、索引、批次顺序；采集 tensor 可看到具体位置"});
  const bool gradient = o.cause == Cause::kOp && IsGradient(o);
  if (o.anatomy && (o.cause == Cause::kInput || o.cause == Cause::kWeight || gradient))
    if (std::string advice = AdviceOfAnatomy(say, o); !advice.empty()) return advice;
  if (o.gradient && ParseOpName(o.op).direction == OpDirection::kBackward)
    return say(
        {"look at what takes the result of this op in the forward pass and is not recorded: the loss and its labels, a "
         "function with a backward pass of its own, a hook",
         "检查前向中使用该算子结果且未采集的代码：loss 及其标签、自带反向的函数、钩子"});
  if (o.gradient)
    return say(
        {"look at what changes gradients behind the backward pass: zero_grad, a reduction, unscaling, a hook; and at "
         "what leads to the loss",
         "检查反向之后改变梯度的代码：zero_grad、归约、unscale、钩子；以及得出 loss 的代码"});
  return {};
}

/// What to do next.
std::string Advice(const Words& say, const StoryOrigin& o) {
  if (!o.mechanism.empty() && !o.overflow)
    return say({"compare where both runs switch the model to training and to evaluation",
                "比对两次运行在何处切换训练与推理模式"});
  if (const std::string advice = AdviceOfForm(say, o); !advice.empty() && !o.overflow) return advice;
  if (o.unused)
    return say(
        {"nothing, unless the finite values that are made of it are wrong", "无需处理，除非由它得出的有限值有误"});
  if (!o.mechanism.empty())
    return say({"find what makes this value: the ops before it, or the data of this step",
                "找出该数值的来源：它之前的算子，或这一 step 的数据"});
  if (o.cause == Cause::kWeight && o.overflow) {
    return say({"look at the optimizer step and the gradients before it", "检查此前的优化器更新和梯度"});
  }
  if (!o.copies.empty())
    return say({"look at what reduces this gradient over these ranks, and at the settings of their optimizers",
                "检查在这些 rank 间归约该梯度的代码，以及各自优化器的设置"});
  if (o.cause == Cause::kCode && !o.module.empty() && !IsModuleName(o.op))
    return say({"read that code; risk_level ALL records the moves and casts in it, too",
                "查看这段代码；risk_level ALL 还会采集其中的搬移和类型转换"});
  if (o.update_unseen)
    return say(
        {"compare the optimizers: rate and schedule, betas, epsilon, decay, clipping; level L1 or mix records "
         "what the update is given",
         "比对两侧的优化器：学习率及其调度、beta、epsilon、权重衰减、梯度裁剪；L1 或 mix 级别会采集更新所用的参数"});
  if (o.written_behind >= 0)
    return say(
        {"look at what writes weights between the steps: an average (EMA) that is not taken back, a checkpoint "
         "that is loaded, a broadcast, weights that are clipped",
         "检查在两个 step 之间改写权重的代码：未换回的滑动平均（EMA）、加载权重文件、广播、权重裁剪"});
  if (o.cause == Cause::kWeight && o.buffer)
    return say({"compare how both runs make this buffer: what is not saved with the weights is made again on loading",
                "比对两侧如何生成该缓冲区：未随权重保存的缓冲区在加载时会重新生成"});
  if (o.cause == Cause::kOp && IsGradient(o))
    return say({"look at every use of the parameter, in the loss too, and at its hooks",
                "检查该参数的所有使用之处（包括 loss 中）及其钩子"});
  const bool of_statistics = o.what != "values" && o.percent > 0;
  if (o.cause == Cause::kOp && MultipliesByWeight(o) && of_statistics)
    return say(
        {"dump tensors: the weight may hold the same values in another order (transposed), which statistics do "
         "not show; or replay the op by itself (--repro)",
         "采集 tensor：权重可能数值相同而顺序不同（转置），统计值无法显示；也可单独重放该算子（--repro）"});
  if (o.cause == Cause::kOp && IsModuleName(o.op) && !o.other_call)
    return say(
        {"compare the settings of this module in both runs (padding, scale, eps, ...), and record it at level mix",
         "比对两次运行中该模块的设置（padding、scale、eps 等），并以 mix 级别采集"});
  if (o.cause == Cause::kOp && of_statistics && !o.other_call)
    return say(
        {"dump tensors: an input may hold the same values in other places (heads, halves, rows, a mask), which "
         "statistics do "
         "not show; or replay the op by itself (--repro)",
         "采集 "
         "tensor：输入可能数值相同而位置不同（头、前后半、行、掩码），统计值无法显示；也可单独重放该算子（--repro）"});
  const bool lone = o.cause == Cause::kMissingOp || o.cause == Cause::kExtraOp;
  if (o.what == "requires_grad" || (lone && ParseOpName(o.op).direction == OpDirection::kBackward))
    return say({"look in front of it for what cuts gradients off: detach(), no_grad, requires_grad_(), stop_gradient",
                "检查它之前截断梯度的代码：detach()、no_grad、requires_grad_()、stop_gradient"});
  if (o.of_step && o.cause != Cause::kArgument)
    return say({"look at what skips the step: a loss scaler that found infinities, accumulation, the place of stop()",
                "检查跳过更新的原因：发现无穷大的 loss scaler、梯度累积、stop() 的位置"});
  if (o.of_step) return say({"compare the optimizers and their parameter groups", "比对两侧的优化器及其参数组"});
  if (o.clips) return say({"compare the gradient clipping of both runs", "比对两次运行的梯度裁剪"});
  if ((o.cause == Cause::kMissingOp || o.cause == Cause::kExtraOp) && !o.parameter.empty())
    return say({"compare which parameters the optimizers were given", "比对两侧传给优化器的参数"});
  if (o.cause == Cause::kShape && o.alone && !ShapesTell(say, o).empty())
    return say({"give both runs the same batch (--save-batches, --replay-batches)",
                "使两次运行使用相同的数据（--save-batches、--replay-batches）"});
  if (o.cause == Cause::kShape && !IsSplit(o))
    return say({"compare what it is made of in both runs", "比对两次运行中它由什么组成"});
  return say(WordsOf(o.cause).next);
}

std::string PlaceLine(const Words& say, const StoryOrigin& o) {
  std::string out = o.op;
  if (!o.frame.empty()) out = say({"{} at {}", "{}，位于 {}"}, out, o.frame);
  if (!o.frame.empty() && !o.function.empty()) out = say({"{} in {}", "{}（{}）"}, out, o.function);
  if (!o.fused.empty()) {
    out += say({"; or {}: the golden run computes them as one", "；或 {}：标杆侧将其合并计算"}, say.Join(o.fused));
  }
  return out;
}

/// Checksums, dtypes, shapes and arguments differ or do not: no rounding is behind that, and none measures it.
bool Measured(const StoryOrigin& o) {
  return !o.what.empty() && o.what != "checksum" && o.what != "dtype" && o.what != "shape" && o.what != "value";
}

std::string ValueLine(const Words& say, const StoryOrigin& o) {
  if (o.reordered || o.of_step || (o.cause == Cause::kArgument && !o.target.empty())) return {};  // it is the headline
  std::string out = o.item;
  const auto add = [&](const std::string& text) {
    out += (out.empty() ? "" : out == o.item ? " " : say.chinese() ? "，" : ", ") + text;
  };
  // Nothing is said twice.
  const bool said = HasValues(o) && OriginText(say, o).find(Differs(say, o)) != std::string::npos;
  if (said) {
    if (!Measured(o) || !(o.units > 1)) return {};
    if (std::isinf(o.units)) return say({"{} differs far beyond rounding", "{} 的差异远超舍入误差"}, o.item);
    return say({"{} differs by {} times what rounding explains", "{} 的差异为舍入误差的 {} 倍"}, o.item,
               TimesText(o.units, 2));
  }
  if (!o.what.empty() && !o.target.empty()) {
    add(say({"{} {}, golden {}", "{} {}，标杆 {}"}, o.what, SixDigits(o.target), SixDigits(o.golden)));
    if (const std::string size = Size(o); !size.empty()) out += " (" + size + ")";
  } else if (!o.target.empty()) {
    add(o.target);
  } else if (o.what == "values" && o.percent >= 0) {
    add(say({"values differ by {}", "数值相差 {}"}, Size(o)));
  }
  if (!Measured(o)) return out;
  if (o.units > 1 && std::isinf(o.units)) add(say({"far beyond rounding", "远超舍入误差"}));
  if (o.units > 1 && std::isfinite(o.units))
    add(say({"{} times what rounding explains", "为舍入误差的 {} 倍"}, TimesText(o.units, 2)));
  return out;
}

std::string VerdictLine(const Words& say, RulerVerdict verdict) {
  if (verdict == RulerVerdict::kBug) return say({"bug: more than rounding can give", "bug：超出舍入所能造成的差异"});
  if (verdict == RulerVerdict::kSuspicious)
    return say({"suspicious: more than rounding is expected to give", "可疑：超出舍入的预期"});
  return {};
}

std::string InheritedLine(const Words& say, const Story& story) {
  if (story.inherited == 0) return {};
  const bool one = story.inherited == 1;
  std::string out =
      story.compared ? say({one ? "{} op only passes it on ({} forward, {} backward)"
                                : "{} ops only pass it on ({} forward, {} backward)",
                            "{} 个算子仅继承（前向 {}，反向 {}）"},
                           story.inherited, story.forward, story.backward)
                     : say({one ? "{} op carries it on" : "{} ops carry it on", "{} 个算子继续传播"}, story.inherited);
  if (story.modules.empty()) return out;
  std::vector<std::string> modules;
  for (const auto& [name, ops] : story.modules) modules.push_back(fmt::format("{} ({})", ModuleText(say, name), ops));
  if (story.more_modules) modules.push_back("...");
  return out + say({"; first in {}", "；最先出现在 {}"}, say.Join(modules));
}

/// Ranks that one call brought it to from the same senders share a line.
std::vector<std::string> ReachedLines(const Words& say, const Story& story) {
  std::vector<std::pair<const StoryReach*, std::vector<int>>> groups;
  for (const StoryReach& r : story.reached) {
    const auto known =
        std::ranges::find_if(groups, [&](const auto& g) { return g.first->op == r.op && g.first->from == r.from; });
    (known == groups.end() ? groups.emplace_back(&r, std::vector<int>()) : *known).second.push_back(r.rank);
  }
  std::vector<std::string> out;
  size_t more = 0;
  for (const auto& [reach, ranks] : groups) {
    const std::string to = Ranks(say, ranks);
    if (out.size() == kListed) {
      more += ranks.size();
    } else if (reach->op.empty()) {
      out.push_back(say({ranks.size() == 1 ? "{} differs later, through no recorded call"
                                           : "{} differ later, through no recorded call",
                         "{} 随后出现差异，未采集到对应的通信"},
                        to));
    } else if (reach->from.empty()) {
      out.push_back(say({"reaches {} through {}", "经 {1} 传到 {0}"}, to, reach->op));
    } else {
      out.push_back(
          say({"reaches {} through {} from {}", "经 {1} 由 {2} 传到 {0}"}, to, reach->op, Ranks(say, reach->from)));
    }
  }
  if (more > 0) out.push_back(say({"and {} more ranks", "以及另外 {} 个 rank"}, more));
  return out;
}

std::string OneSidedLine(const Words& say, const std::vector<std::string>& modules, bool target) {
  if (modules.empty()) return {};
  const size_t shown = std::min(modules.size(), kListed);
  std::vector<std::string> names(modules.begin(), modules.begin() + static_cast<std::ptrdiff_t>(shown));
  if (modules.size() > shown) names.push_back(say({"... ({} in all)", "...（共 {} 个）"}, modules.size()));
  return target ? say({"with parameters, only in the target: {}", "带参数，仅调试侧有：{}"}, say.Join(names))
                : say({"with parameters, only in the golden run: {}", "带参数，仅标杆侧有：{}"}, say.Join(names));
}

}  // namespace

namespace {

/// What lies between the step before and a weight that differs.
std::string BetweenText(const Words& say, const StoryOrigin& o) {
  if (!o.update_unseen)
    return say({"step {} is bit-equal to its end, the update of the weights included: they were written behind it",
                "step {} 直到结束（包括权重更新）逐位相同：权重是在其后被改写的"},
               o.written_behind);
  std::string out = say({"step {} and its gradients are bit-equal; the update of the weights was not recorded: it, or "
                         "what writes weights behind it, is another one",
                         "step {} 及其梯度逐位相同；权重更新未被采集：不一致来自该更新，或其后改写权重的代码"},
                        o.written_behind);
  if (o.update_ratio != 0)
    out += say({"; weights that were zero changed by {:.4g} times as much as in the golden run",
                "；原为零的权重的变化量为标杆侧的 {:.4g} 倍"},
               o.update_ratio);
  return out;
}

}  // namespace

std::string CauseText(Cause cause, Language language) { return Words(language)(WordsOf(cause).brief); }

std::string OriginSentence(const StoryOrigin& origin, Language language) {
  return OneLine(OriginText(Words(language), origin));
}

std::string StoryHeadline(const Story& story, Language language) {
  const Words say(language);
  std::string unseen = UnseenText(say, story, language);
  std::string answer = CleanHeadline(say, story);
  if (!story.origins.empty()) {
    const std::string what = OriginText(say, story.origins.front());
    answer = story.Drifts()     ? say({"Origin unknown: {}", "源头未知：{}"}, what)
             : story.Harmless() ? say({"No harm seen: {}", "未见危害：{}"}, what)
                                : say({"Origin: {}", "误差源头：{}"}, what);
  }
  if (!unseen.empty() && !answer.empty()) unseen += say({". ", "。"});
  return OneLine(unseen + answer);
}

std::vector<std::string> StoryLines(const Story& story, Language language) {
  const Words say(language);
  std::vector<std::string> out{StoryHeadline(story, language)};
  const auto add = [&](const Phrase& label, const std::string& text) {
    if (!text.empty()) out.push_back(OneLine(say(label) + std::string(say.colon()) + text));
  };
  const auto add_notes = [&] {
    add({"modules", "模块"}, OneSidedLine(say, story.target_modules, true));
    add({"modules", "模块"}, OneSidedLine(say, story.golden_modules, false));
    add({"not recorded", "未采集"}, UnrecordedLine(say, story));
    add({"not compared", "未比对"}, OtherFormLine(say, story));
    add({"not compared", "未比对"}, DividedLine(say, story));
  };
  if (story.origins.empty()) {
    add_notes();
    if (!story.cut.empty() && story.cut.front().cause == Cause::kDraw)
      add({"next", "下一步"}, Advice(say, story.cut.front()));
    return out;
  }
  const StoryOrigin& o = story.origins.front();
  add({"op", "算子"}, PlaceLine(say, o));
  add({"parameter", "参数"}, o.owner);
  add({"value", "数值"}, ValueLine(say, o));
  add({"verdict", "判定"}, VerdictLine(say, o.verdict));
  if (!o.what.empty()) add({"why", "原因"}, say.InLanguage(o.mechanism));  // else it is the headline
  if (o.anatomy && o.exchanged.empty()) add({"how", "形态"}, AnatomyText(*o.anatomy, language));
  add({"since", "起始"}, BadSinceText(o.since, language));
  if (o.written_behind >= 0) add({"before", "此前"}, BetweenText(say, o));
  if (o.weights > 1)
    add({"also", "另一处"}, say({o.weights == 2 ? "{} more weight differs likewise" : "{} more weights differ likewise",
                                 "另有 {} 个权重同样不一致"},
                                o.weights - 1));
  if (o.cause == Cause::kCode && !o.other_op.empty()) add({"after", "位于其后"}, o.other_op);
  if (o.cause == Cause::kMask && !o.other_op.empty()) add({"mask", "掩码"}, o.other_op);
  if (o.cause == Cause::kUninitialised && !o.other_op.empty()) add({"memory of", "内存来自"}, o.other_op);
  add({"float64", "float64 重放"}, o.replay);
  if (!o.drawn.empty())
    add({"random", "随机数"},
        say({"{} drew other numbers in the two runs: only what differs by itself is named behind it",
             "两次运行中 {} 抽取了不同的随机数：其后仅列出自身不一致之处"},
            o.drawn));
  for (const std::string& line : ReachedLines(say, story)) add({"spread", "扩散"}, line);
  add({"inherited", "继承"}, InheritedLine(say, story));
  if (o.exchanges > 0)
    add({"also", "另一处"},
        say({o.exchanges == 1 ? "{} more pair of parameters is exchanged" : "{} more pairs of parameters are exchanged",
             "另有 {} 对参数互换"},
            o.exchanges));
  for (size_t i = 1; i < story.origins.size() && i <= kListed; ++i) {
    const StoryOrigin& other = story.origins[i];
    const bool owned = other.cause == Cause::kArgument && !other.owner.empty();
    add({"also", "另一处"},
        OriginText(say, other) + (owned ? say({"; parameter: {}", "；参数：{}"}, other.owner) : std::string()));
  }
  if (story.origins.size() > kListed + 1)
    add({"also", "另一处"}, say({"{} more origins", "还有 {} 处源头"}, story.origins.size() - kListed - 1));
  add_notes();
  add({"next", "下一步"}, Advice(say, o));
  return out;
}

std::string StoryText(const Story& story, Language language) {
  std::string out;
  for (const std::string& line : StoryLines(story, language)) out += (out.empty() ? "" : "  ") + line + "\n";
  return out;
}

}  // namespace msprobe
