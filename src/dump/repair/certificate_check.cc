#include "dump/repair/certificate_check.h"

#include <fmt/core.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "json/members.h"
#include "json/parser.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/stats.h"

namespace msprobe {
namespace {

bool StaysBelow(std::string_view path) {
  return !path.empty() && path.front() != '/' && path.find("..") == std::string_view::npos;
}

bool IsAsCertified(const std::string& dump, std::string_view name, std::string_view crc) {
  if (!StaysBelow(name)) return false;
  const auto file = MappedFile::Open(JoinPath(dump, std::string(name)));
  return file.ok() && fmt::format("{:08x}", Crc32(file->text().data(), file->text().size())) == crc;
}

}  // namespace

void CheckCertificate(const std::string& dump, std::vector<VerifyFinding>* findings) {
  const std::string path = JoinPath(dump, kCertificateName);
  if (access(path.c_str(), F_OK) != 0) return;
  const auto damaged = [&](const Message& why) {
    findings->push_back({"certificate_unreadable", 1, Msg("{} cannot be read: {}", kCertificateName, why)});
  };
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return damaged(file.status().text());
  JsonDoc doc;
  if (const Status status = ParseJson(file->text(), path, &doc); !status.ok()) return damaged(status.text());
  const JsonValue* verdict = doc.IsObject() ? doc.Find("verdict") : nullptr;
  const JsonValue* files = doc.IsObject() ? doc.Find("files") : nullptr;
  if (verdict == nullptr || !verdict->IsString() || files == nullptr || !files->IsObject()) {
    return damaged(Msg("it has no verdict or no files"));
  }
  uint64_t changed = 0;
  std::string first;
  for (const auto& member : files->Members()) {
    const std::string_view name = member.name;
    if (member.value.IsString() && IsAsCertified(dump, name, member.value.Text())) continue;
    if (changed++ == 0) first = name;
  }
  findings->push_back({"certificate", 1, Message("certify: " + Shown(verdict->Text())), true});
  if (changed == 0) return;
  findings->push_back({"certificate_of_other_files", changed,
                       Msg("{} of {} files are not those that were certified, the first is {}: certify again", changed,
                           files->size(), Shown(first))});
}

}  // namespace msprobe
