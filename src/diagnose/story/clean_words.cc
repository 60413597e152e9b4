#include "diagnose/story/clean_words.h"

#include <cmath>

#include "diagnose/story/place_words.h"

namespace msprobe {
namespace {

constexpr double kAlike = 0.02;  // gradients that are the same but for the order of sums

/// Nothing is wrong in what was seen, which was not all.
std::string PartlyClean(const Words& say, const Story& s) {
  if (!s.compared && s.steps == 0) return {};  // nobody looked
  if (!s.compared) {
    return say({"No NaN or infinity begins in what was seen of {} ranks of {} steps",
                "在已看到的部分（{} 个 rank、{} 个 step）中未发现 NaN 或无穷大的源头"},
               s.ranks, s.steps);
  }
  const uint64_t agree = s.ops.bit_equal + s.ops.round_off + s.ops.rewritten;
  if (agree == 0 && s.unread > 0) {
    return say({"No tensor could be compared; what their statistics show agrees",
                "没有可比对的 tensor；其统计值所显示的内容一致"});
  }
  if (agree == 0) return say({"Nothing could be compared", "没有可比对的内容"});
  if (s.ops.round_off + s.ops.rewritten == 0) {
    return say({"What was seen agrees: {} ops are bit-equal", "已看到的部分一致：{} 个算子逐位相同"}, agree);
  }
  return say({"What was seen agrees up to rounding: {} ops are bit-equal, {} within round-off",
              "已看到的部分差异均在舍入误差内：{} 个算子逐位相同，{} 个在舍入误差内"},
             s.ops.bit_equal, s.ops.round_off + s.ops.rewritten);
}

/// What was compared by mistake, which no values can answer.
std::string MistakeHeadline(const Words& say, const Story::Mistake& m) {
  if (m.kind == Story::Mistake::Kind::kOtherStep)
    return say({"Unknown: step {} of the target is compared with step {} of the golden run, whose data and weights are "
                "others: compare the same step of both",
                "无法判断：将调试侧的 step {} 与标杆侧的 step {} 比对，二者的数据和权重不同：请比对两侧的同一个 step"},
               m.target, m.golden);
  return say({"Unknown: these are different models: {} ops are only in the target, {} only in the golden run; -lm maps "
              "modules of other names",
              "无法判断：两侧是不同的模型：仅调试侧有 {} 个算子，仅标杆侧有 {} 个算子；名称不同的模块可用 -lm 映射"},
             m.target, m.golden);
}

}  // namespace

std::string UnseenText(const Words& say, const Story& s, Language language) {
  std::string out = GapText(s.gaps, language);
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : std::string(say.stop())) + text; };
  if (s.unread > 0) {
    add(say({s.unread == 1 ? "{} row had no tensor: its file is missing, cut or not readable"
                           : "{} rows had no tensor: their files are missing, cut or not readable",
             "{} 行没有 tensor：文件缺失、被截断或无法读取"},
            s.unread));
  }
  if (s.not_compared > 0) {
    add(say({s.compared ? "{} pairs of files could not be compared, the first: {}"
                        : "{} ranks could not be read, the first: {}",
             s.compared ? "{} 对文件无法比对，首个：{}" : "{} 个 rank 无法读取，首个：{}"},
            s.not_compared, s.first_not_compared));
  }
  return out;
}

std::string CleanHeadline(const Words& say, const Story& s) {
  if (!s.compared && !s.whole()) return PartlyClean(say, s);
  if (!s.compared) {
    return say({"No NaN or infinity begins here: {} ranks of {} steps were looked at",
                "未发现 NaN 或无穷大的源头：共检查 {} 个 rank、{} 个 step"},
               s.ranks, s.steps);
  }
  const bool same = s.mistake.kind == Story::Mistake::Kind::kSamePath;
  if (s.mistake.kind != Story::Mistake::Kind::kNone && !same) return MistakeHeadline(say, s.mistake);
  const uint64_t compared =
      s.ops.bit_equal + s.ops.round_off + s.ops.rewritten + s.ops.inherited + s.ops.suspicious + s.ops.bug;
  std::string out;
  if (!s.whole() && s.ops.inherited + s.ops.suspicious + s.ops.bug == 0) {
    out = PartlyClean(say, s);
  } else if (s.outcome == Story::Outcome::kEqual) {
    out = say({"No difference: all {} compared ops are bit-equal", "无差异：比对的 {} 个算子全部逐位相同"}, compared);
  } else if (s.outcome == Story::Outcome::kRoundOff) {
    out = say({"No difference beyond rounding: {} ops are bit-equal, {} within round-off",
               "差异均在舍入误差内：{} 个算子逐位相同，{} 个在舍入误差内"},
              s.ops.bit_equal, s.ops.round_off);
    if (s.ops.rewritten > 0)
      out += say({", {} computed another way with the same result", "，{} 个计算方式不同而结果相同"}, s.ops.rewritten);
  } else if (!s.cut.empty() && s.cut.front().cause == Cause::kDraw) {
    const StoryOrigin& o = s.cut.front();
    out =
        say({"Unknown: {}: {} drew other random numbers in the two runs, and what comes behind it cannot be compared; "
             "nothing else that differs by itself was found",
             "无法判断：{}：两次运行中 {} 抽取了不同的随机数，其后的数值无法比对；未发现其他自身不一致之处"},
            Where(say, o), o.op);
  } else if (!s.cut.empty()) {
    const StoryOrigin& o = s.cut.front();
    out = say(
        {"Unknown: {}: {} has shape {}, in the golden run {}: the same data in micro batches of another size, whose "
         "values cannot be compared",
         "无法判断：{}：{} 的 shape 为 {}，标杆为 {}：同样的数据被划分为不同大小的 micro batch，其数值无法比对"},
        Where(say, o), o.item, o.target, o.golden);
    if (o.factor > 0 && std::fabs(o.factor - 1) > kAlike)
      out +=
          say({"; the gradients are {:.3g} times those of the golden run: compare how losses are averaged over micro "
               "batches",
               "；梯度为标杆的 {:.3g} 倍：请比对 loss 在各 micro batch 间的平均方式"},
              o.factor);
  } else if (compared == 0) {
    out = say(
        {"Unknown: no op has a partner with values to compare; -lm maps modules of other names, -fm matches by order",
         "无法判断：没有可比对的算子；名称不同的模块可用 -lm 映射，也可用 -fm 按顺序匹配"});
  } else {
    out = say({"Origin unknown: {} suspicious ops, {} beyond what rounding can give, and none of them begins it",
               "源头未知：可疑算子 {} 个，超出舍入误差的算子 {} 个，均非起点"},
              s.ops.suspicious, s.ops.bug);
  }
  if (s.target_only + s.golden_only > 0) {
    out +=
        say({"; {} ops only in the target, {} only in the golden run", "；仅调试侧有 {} 个算子，仅标杆侧有 {} 个算子"},
            s.target_only, s.golden_only);
  }
  if (same) out += say({"; both paths name the same dump", "；两个路径指向同一个 dump"});
  if (s.unseen > 0) out += say({"; {} ops were not seen", "；{} 个算子未看到"}, s.unseen);
  return out;
}

std::string UnrecordedLine(const Words& say, const Story& story) {
  if (story.unrecorded == 0) return {};
  return say({"anything inside of {} ({} modules in all): a difference that begins there shows one op later",
              "{} 等共 {} 个模块的内部：在其中产生的差异会晚一个算子才显现"},
             story.first_unrecorded, story.unrecorded);
}

std::string OtherFormLine(const Words& say, const Story& story) {
  if (story.other_forms == 0) return {};
  return say({"weights of {} ({} modules in all), which one run holds in another form (adapters, quantised): what the "
              "modules give was compared",
              "{} 等共 {} 个模块的权重：其中一侧以另一种形式保存（adapter、量化），比对的是模块的输出"},
             story.first_other_form, story.other_forms);
}

std::string DividedLine(const Words& say, const Story& story) {
  if (story.divided == 0) return {};
  return say({"{} ops on gradients or parameters that only one run divides so, over its ranks or into buckets",
              "{} 个算子：其梯度或参数仅一侧如此切分（到各 rank 或划分为桶）"},
             story.divided);
}

}  // namespace msprobe
