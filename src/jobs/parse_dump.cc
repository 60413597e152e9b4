#include "jobs/parse_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "import/adump_layout.h"
#include "import/opdebug.h"
#include "tensor/files/adump_reader.h"
#include "tensor/files/atb_reader.h"
#include "tensor/files/npy_writer.h"
#include "tensor/files/pt_writer.h"

namespace msprobe {
namespace {

constexpr std::string_view kAtbEnd = ".bin", kFailedList = "convert_failed_file_list.txt";
// What a dump holds beside its tensors, or what was converted already.
constexpr std::string_view kOther[] = {".npy", ".pt", ".csv", ".json", ".txt", ".db", ".ir"};

bool IsOther(std::string_view name) {
  return std::any_of(std::begin(kOther), std::end(kOther), [&](std::string_view end) { return EndsWith(name, end); });
}

Status WriteBytes(const std::string& path, std::string_view bytes) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(bytes));
  return file.Commit();
}

class Conversion {
 public:
  Conversion(const ParseSettings& settings, ParseReport* report) : settings_(settings), report_(report) {}

  Status Convert(const std::string& path) {
    const std::string name(BaseName(path));
    MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    if (EndsWith(name, kAtbEnd) && StartsWith(file.text(), "$")) {
      MSP_ASSIGN_OR_RETURN(const FileTensor tensor, ReadAtb(file.text(), path));
      return WriteTensor(name.substr(0, name.size() - kAtbEnd.size()), tensor);
    }
    MSP_ASSIGN_OR_RETURN(const AdumpFile dump, ReadAdump(file.text(), path));
    if (IsOpdebugName(name)) return ConvertOverflow(dump, name, path);
    for (const AdumpTensor& t : dump.tensors) {
      if (!t.why.empty()) return BadInput(Msg("{}, {}: {}", OneLine(path), t.tensor.name, t.why));
    }
    for (const AdumpTensor& t : dump.tensors) MSP_RETURN_IF_ERROR(WriteAdump(name + "." + t.tensor.name, t));
    for (size_t i = 0; i < dump.buffers.size(); ++i) {
      const std::string out = fmt::format("{}.{}.{}.bin", name, dump.buffers[i].type == 0 ? "l1buffer" : "buffer", i);
      MSP_RETURN_IF_ERROR(WriteBytes(JoinPath(settings_.output, out), dump.buffers[i].bytes));
      report_->written.push_back(out);
    }
    return OkStatus();
  }

 private:
  Status ConvertOverflow(const AdumpFile& dump, const std::string& name, const std::string& path) {
    for (const AdumpTensor& t : dump.tensors) {
      if (!t.output) continue;
      MSP_ASSIGN_OR_RETURN(const std::string json, OpdebugJson(t.bytes, path));
      const std::string out = fmt::format("{}.output.{}.json", name, t.index);
      MSP_RETURN_IF_ERROR(WriteBytes(JoinPath(settings_.output, out), json));
      report_->written.push_back(out);
    }
    return OkStatus();
  }

  Status WriteAdump(const std::string& stem, const AdumpTensor& t) {
    if (!settings_.host) return WriteTensor(stem, t.tensor);
    const HostTensor host = ToHost(t);
    if (host.device_order) {
      report_->warnings.push_back(
          t.format == AscendFormat::kOther
              ? Msg("{} is in the order of the device: there is no rule for format of its number", stem)
              : Msg("{} is in the order of the device: there is no rule for format {}", stem,
                    AscendFormatName(t.format)));
    }
    return WriteTensor(stem, host.tensor);
  }

  Status WriteTensor(const std::string& stem, const FileTensor& tensor) {
    const std::string name = stem + (settings_.numpy ? ".npy" : ".pt");
    const std::string path = JoinPath(settings_.output, name);
    uint64_t bytes = 0;
    MSP_RETURN_IF_ERROR(settings_.numpy ? WriteNpyFile(path, tensor.view(), &bytes)
                                        : WritePtFile(path, tensor.view(), &bytes));
    report_->written.push_back(name);
    return OkStatus();
  }

  const ParseSettings& settings_;
  ParseReport* report_;
};

StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  if (!IsDirectory(path)) return std::vector<std::string>{path};
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  std::vector<std::string> out;
  for (const std::string& name : names) {
    std::string file = JoinPath(path, name);
    if (IsRegularFile(file) && !IsOther(name)) out.push_back(std::move(file));
  }
  if (!out.empty()) return out;
  return BadInput(
      Msg("{} holds no dump of kernels: give the directory of one step, whose files are TYPE.OP.TASK.STREAM.TIME, or "
          "one with the .bin files of ATB",
          path));
}

}  // namespace

StatusOr<ParseReport> ParseDump(const ParseSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(settings.path));
  MSP_RETURN_IF_ERROR(MakeOutputDir(settings.output));
  ParseReport report;
  Conversion conversion(settings, &report);
  for (const std::string& file : files) {
    if (InterruptRequested()) return Interrupted();
    Status status = conversion.Convert(file);
    if (status.ok()) continue;
    if (status.code() != Code::kBadInput) return status;
    std::error_code error;
    const std::string whole = std::filesystem::absolute(file, error).lexically_normal().string();
    report.failures.emplace_back(error ? file : whole, std::move(status));
  }
  if (report.failures.empty()) return report;
  std::string list;
  for (const auto& [file, status] : report.failures) list += file + "\n";
  report.failed_list = JoinPath(settings.output, kFailedList);
  MSP_RETURN_IF_ERROR(WriteBytes(report.failed_list, list));
  return report;
}

}  // namespace msprobe
