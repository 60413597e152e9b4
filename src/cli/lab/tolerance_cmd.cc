// msprobe tolerance: the line of a test that holds an op to what rounding allows.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "base/text.h"
#include "cli/context/register_commands.h"
#include "json/writer.h"
#include "lab/tolerance.h"

namespace msprobe {
namespace {

struct ToleranceArgs {
  std::vector<std::string> ops, shapes;
  ToleranceQuery query;
};

std::string ToleranceJson(const ToleranceArgs& args, const std::vector<ToleranceLine>& lines) {
  JsonWriter json;
  json.BeginArray();
  for (size_t i = 0; i < lines.size(); ++i) {
    json.BeginObject();
    json.Member("op", args.ops[i]);
    json.Member("dtype", DTypeName(args.query.dtype));
    json.Member("rule", lines[i].rule);
    json.Key("terms"), json.Number(lines[i].terms);
    json.Member("line", lines[i].line);
    json.Member("why", lines[i].why);
    json.EndObject();
  }
  json.EndArray();
  return json.Take() + "\n";
}

Status Run(const ToleranceArgs& args, bool as_json) {
  ToleranceQuery query = args.query;
  for (const std::string& text : args.shapes) {
    MSP_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ParseShape(text));
    query.shapes.push_back(std::move(shape));
  }
  std::vector<ToleranceLine> lines;
  for (const std::string& op : args.ops) {
    query.op = op;
    MSP_ASSIGN_OR_RETURN(ToleranceLine line, ToleranceOf(query));
    lines.push_back(std::move(line));
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i)
    text +=
        fmt::format("# {}, {}: {}\n{}\n", OneLine(args.ops[i]), DTypeName(query.dtype), lines[i].why, lines[i].line);
  PrintJson(as_json ? ToleranceJson(args, lines) : text);  // Python in every language
  return OkStatus();
}

}  // namespace

void RegisterTolerance(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<ToleranceArgs>();
  const std::map<std::string, DType> dtypes = {{"float32", DType::kFloat32},
                                               {"float16", DType::kFloat16},
                                               {"bfloat16", DType::kBFloat16},
                                               {"float64", DType::kFloat64}};
  CLI::App* command = app.add_subcommand("tolerance", "print a ready assert_close line with a justified tolerance");
  command->add_option("op", args->ops, "functions, such as exp or matmul")->required();
  command->add_option("--dtype", args->query.dtype, "float32, float16, bfloat16 or float64")
      ->transform(CLI::CheckedTransformer(dtypes))
      ->option_text("DTYPE");
  command->add_option("--shape", args->shapes, "shapes of the inputs, such as 64x512,512x32")->delimiter(',');
  command->add_option("--terms", args->query.terms, "how many terms each sum has, instead of shapes")
      ->check(CLI::PositiveNumber);
  command->add_flag("--backward", args->query.backward, "of the gradient of a function of each element");
  command->add_flag("--json", context->json, "print the lines as JSON");
  command->callback([args, context] { context->status = Run(*args, context->json); });
}

}  // namespace msprobe
