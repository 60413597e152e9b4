#include <msprobe/dump.h>

#include "dump/reader.h"

namespace msprobe {

Dump::Dump(std::unique_ptr<DumpFile> file) : file_(std::move(file)) {}
Dump::Dump(Dump&&) noexcept = default;
Dump& Dump::operator=(Dump&&) noexcept = default;
Dump::~Dump() = default;

StatusOr<Dump> Dump::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(DumpFile file, DumpFile::Open(path));
  return Dump(std::make_unique<DumpFile>(std::move(file)));
}

std::string_view Dump::task() const { return file_->task(); }
std::string_view Dump::level() const { return file_->level(); }
std::string_view Dump::framework() const { return file_->framework(); }
const std::string& Dump::truncated() const { return file_->truncated().English(); }
size_t Dump::size() const { return file_->ops().size(); }
std::string_view Dump::name(size_t index) const { return file_->ops()[index].name; }
std::string_view Dump::json(size_t index) const {
  const OpSpan& op = file_->ops()[index];
  return file_->file().text().substr(op.offset, op.length);
}
size_t Dump::find(std::string_view name) const { return file_->FindOp(name).value_or(size()); }

}  // namespace msprobe
