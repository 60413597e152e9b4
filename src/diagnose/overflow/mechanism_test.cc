#include "diagnose/overflow/mechanism.h"

#include <gtest/gtest.h>

#include <string>

#include "base/words/translate.h"
#include "json/parser.h"

namespace msprobe {
namespace {

std::string Values(const std::string& max, const std::string& min, const std::string& dtype = "float32",
                   const std::string& shape = "2, 3") {
  return R"({"type": "torch.Tensor", "dtype": "torch.)" + dtype + R"(", "shape": [)" + shape + R"(], "Max": )" + max +
         R"(, "Min": )" + min + R"(, "Mean": 0.5, "Norm": 1.5})";
}

std::string Scalar(const std::string& v) { return R"({"type": "float", "value": )" + v + "}"; }

/// A tensor with -inf in it, or with NaN.
std::string Masked(const std::string& shape, int count, bool nan = false) {
  std::string text = nan ? Values("NaN", "NaN", "float32", shape) : Values("1.5", "-Infinity", "float32", shape);
  text.pop_back();
  return text + (nan ? R"(, "nan_count": )" : R"(, "inf_count": )") + std::to_string(count) + "}";
}

struct MechanismCase {
  std::string op, given, result, kwargs, forward, wanted;
};

std::string Told(const MechanismCase& c, Language language) {
  const std::string name = (c.op.find('.') == std::string::npos ? "Torch." + c.op + ".0" : c.op) +
                           (c.forward.empty() ? ".forward" : ".backward");
  JsonDoc doc, forward_doc;
  const bool backward = !c.forward.empty();
  const std::string text = backward ? R"({"input": [)" + c.given + R"(], "output": [)" + c.result + "]}"
                                    : R"({"input_args": [)" + c.given + R"(], "input_kwargs": {)" + c.kwargs +
                                          R"(}, "output": [)" + c.result + "]}";
  EXPECT_TRUE(ParseJson(text, "test", &doc).ok()) << text;
  std::vector<Item> items, forward;
  FlattenOp(name, doc, &items);
  if (backward) {
    EXPECT_TRUE(
        ParseJson(R"({"input_args": [)" + c.forward + R"(], "input_kwargs": {}, "output": []})", "test", &forward_doc)
            .ok());
    FlattenOp("Torch." + c.op + ".0.forward", forward_doc, &forward);
  }
  return InLanguage(MechanismOf(name, items, forward), language);
}

class Mechanism : public testing::TestWithParam<MechanismCase> {};

TEST_P(Mechanism, IsToldFromTheFigures) {
  EXPECT_EQ(Told(GetParam(), Language::kEnglish), GetParam().wanted);
  const std::string chinese = Told(GetParam(), Language::kChinese);
  if (!GetParam().wanted.empty()) EXPECT_NE(chinese, GetParam().wanted) << "has Chinese words";
}

const std::string kBoundless = Values("Infinity", "1"), kNoNumber = Values("NaN", "NaN"), kTame = Values("1.5", "-1.5");

INSTANTIATE_TEST_SUITE_P(
    Kinds, Mechanism,
    testing::Values(
        MechanismCase{"Functional.cross_entropy.3", kTame + ", " + Values("-100", "-100", "int64"), kNoNumber, "", "",
                      "every label is -100, which is ignored: it is the mean of nothing (input.1)"},
        MechanismCase{"Functional.nll_loss.0", kTame + ", " + Values("7", "7", "int32"), kNoNumber,
                      R"("ignore_index": {"type": "int", "value": 7})", "",
                      "every label is 7, which is ignored: it is the mean of nothing (input.1)"},
        MechanismCase{"Functional.cross_entropy.0", kTame + ", " + Values("4", "-100", "int64"), kNoNumber, "", "", ""},
        MechanismCase{"log", Values("3", "0"), kBoundless, "", "", "it takes the logarithm of zero: input.0 has Min 0"},
        MechanismCase{"log1p", Values("3", "-2"), kNoNumber, "", "",
                      "it takes the logarithm of a negative number: input.0 has Min -2"},
        MechanismCase{"Tensor.__truediv__.1", kTame + ", " + Values("2", "0"), kBoundless, "", "",
                      "it divides by zero: input.1 has Min 0"},
        MechanismCase{"Tensor.div_.1", kTame + ", " + Scalar("0"), kBoundless, "", "",
                      "it divides by zero: input.1 is 0"},
        MechanismCase{"Tensor.__rtruediv__.1", Values("0", "-2") + ", " + Scalar("1"), kBoundless, "", "",
                      "it divides by zero: input.0 has Max 0"},
        // Whether a divisor between -1 and 2 holds a zero is not known.
        MechanismCase{"div", kTame + ", " + Values("2", "-1"), kBoundless, "", "", ""},
        MechanismCase{"rsqrt", Values("3", "0"), kBoundless, "", "",
                      "it divides by the root of zero: input.0 has Min 0"},
        MechanismCase{"sqrt", Values("3", "-1e-9"), kNoNumber, "", "",
                      "it takes the root of a negative number: input.0 has Min -1e-09"},
        MechanismCase{"exp", Values("12", "0", "float16"), Values("Infinity", "1", "float16"), "", "",
                      "exp of 12 is beyond float16, whose largest argument is 11.09 (input.0)"},
        MechanismCase{"exp", Values("88", "0"), kBoundless, "", "", ""},
        MechanismCase{"Tensor.pow.0", Values("2", "-1") + ", " + Scalar("0.5"), kNoNumber, "", "",
                      "it raises a negative number to the power 0.5: input.0 has Min -1"},
        MechanismCase{"acos", Values("1.0001", "0"), kNoNumber, "", "",
                      "acos is not defined there: input.0 reaches 1.0001"},
        MechanismCase{"acos", Values("1.0000001192092896", "0"), kNoNumber, "", "",
                      "acos is not defined there: input.0 reaches 1.00000012"},
        MechanismCase{"mean", Values("null", "null", "float32", "0, 4"), kNoNumber, "", "",
                      "it is the mean of nothing: input.0 has no elements"},
        MechanismCase{"Functional.softmax.2", Masked("2, 6, 6", 39), Masked("2, 6, 6", 12, true),
                      R"("dim": {"type": "int", "value": -1})", "",
                      "2 of its 12 rows are masked as a whole: nothing but -inf is left in them (input.0, 6 in a row)"},
        MechanismCase{"softmax", Masked("5, 4", 7) + ", " + Scalar("0"), Masked("5, 4", 5, true), "", "",
                      "1 of its 4 rows is masked as a whole: nothing but -inf is left in it (input.0, 5 in a row)"},
        // Not whole rows: something else made some of them.
        MechanismCase{"softmax", Masked("5, 4", 7) + ", " + Scalar("-1"), Masked("5, 4", 5, true), "", "", ""},
        MechanismCase{"std", Values("1", "1", "float32", "1"), kNoNumber, "", "",
                      "it is the variance of a single value, divided by none: input.0 has one element"},
        MechanismCase{
            "Functional.linear.0", Values("900", "-3", "float16") + ", " + Values("80", "-90", "float16"),
            Values("Infinity", "1", "float16"), "", "",
            "the result is beyond float16, whose largest number is 65504: what it is given reaches 900 (input.0)"},
        MechanismCase{"Functional.linear.1", Values("3.8", "-3") + ", " + Values("2", "-2"), kBoundless, "", "", ""},
        MechanismCase{"Tensor.half.0", Values("70000", "0"), Values("Infinity", "0", "float16"), "", "",
                      "float16 cannot hold 70000: its largest number is 65504 (input.0)"},
        // What is no product or sum may be infinite for reasons of its own.
        MechanismCase{"Functional.my_kernel.0", kTame, kBoundless, "", "", ""},
        MechanismCase{"log", Values("3", "0.5"), kBoundless, "", "", ""},
        // Nothing is wrong with it.
        MechanismCase{"log", Values("3", "0"), kTame, "", "", ""},
        MechanismCase{"sqrt", kTame, kBoundless, "", Values("3", "0"),
                      "the gradient of sqrt at zero is infinite: input.0 of its forward call has Min 0"},
        MechanismCase{"sqrt", kTame, kBoundless, "", Values("3", "0.1"), ""},
        MechanismCase{"pow", kTame, kBoundless, "", Values("3", "0") + ", " + Scalar("0.5"),
                      "the gradient of the power 0.5 at zero is infinite: input.0 of its forward call"}));

}  // namespace
}  // namespace msprobe
