#include "graph/db/btree_writer.h"

#include <cstring>

#include "graph/db/sqlite_format.h"

namespace msprobe {
namespace {

constexpr size_t kOverflowText = kSqlPageBytes - kSqlChildBytes;  // of an overflow page

size_t HeadBytes(size_t level) { return level == 0 ? kSqlLeafHead : kSqlInnerHead; }

template <typename Page>
bool Fits(size_t level, const Page& page, size_t cell) {
  return HeadBytes(level) + kSqlPointerBytes * (page.cells + size_t{1}) + cell <= page.content;
}

/// Where a cell of this size goes.
template <typename Page>
char* Room(size_t level, size_t cell, Page* page) {
  page->content -= static_cast<uint32_t>(cell);
  PutSqlBig(page->bytes.data() + HeadBytes(level) + kSqlPointerBytes * page->cells++, page->content, kSqlPointerBytes);
  return page->bytes.data() + page->content;
}

template <typename Page>
void PutCell(size_t level, uint32_t child, std::string_view cell, Page* page) {
  const size_t head = level == 0 ? 0 : kSqlChildBytes;
  char* const out = Room(level, head + cell.size(), page);
  if (head > 0) PutSqlBig(out, child, kSqlChildBytes);
  std::memcpy(out + head, cell.data(), cell.size());
}

size_t SizeOf(std::span<const std::string_view> parts) {
  size_t size = 0;
  for (std::string_view part : parts) size += part.size();
  return size;
}

}  // namespace

size_t BTreeWriter::LocalBytes(size_t payload) const {
  return SqlLocalBytes(kSqlPageBytes, kind_ == Kind::kTable, payload);
}

uint32_t BTreeWriter::WriteOverflow(std::string_view rest) {
  uint32_t first = 0;
  while (!rest.empty()) {
    uint32_t number = 0;
    char* const page = file_->Add(&number);
    if (first == 0) first = number;
    const size_t size = std::min(rest.size(), kOverflowText);
    PutSqlBig(page, size < rest.size() ? file_->next() : 0, kSqlChildBytes);
    std::memcpy(page + kSqlChildBytes, rest.data(), size);
    std::memset(page + kSqlChildBytes + size, 0, kOverflowText - size);
    rest.remove_prefix(size);
  }
  return first;
}

char* BTreeWriter::PutPayload(char* out, std::span<const std::string_view> parts, size_t payload, size_t local) {
  if (local == payload) {
    for (std::string_view part : parts) {
      std::memcpy(out, part.data(), part.size());
      out += part.size();
    }
    return out;
  }
  joined_.clear();
  for (std::string_view part : parts) joined_ += part;
  std::memcpy(out, joined_.data(), local);
  PutSqlBig(out + local, WriteOverflow(std::string_view(joined_).substr(local)), kSqlChildBytes);
  return out + local + kSqlChildBytes;
}

BTreeWriter::Level& BTreeWriter::At(size_t level) {
  while (levels_.size() <= level) levels_.emplace_back();
  return levels_[level];
}

void BTreeWriter::AddRow(int64_t row_id, SqlRecord* row) {
  const std::span<const std::string_view> parts = row->Parts();
  const size_t payload = SizeOf(parts), local = LocalBytes(payload);
  const auto key = static_cast<uint64_t>(row_id);
  const size_t cell =
      SqlVarintSize(payload) + SqlVarintSize(key) + local + (local < payload ? kSqlChildBytes : size_t{0});
  Page& page = At(0).now;
  if (!Fits(0, page, cell)) {
    const uint32_t number = Write(0, 0, &page);
    std::array<char, kMostVarint> last{};
    const char* const end = PutSqlVarint(last.data(), last_row_);
    AddCell(1, number, {last.data(), static_cast<size_t>(end - last.data())});
  }
  char* const out = Room(0, cell, &page);
  PutPayload(PutSqlVarint(PutSqlVarint(out, payload), key), parts, payload, local);
  last_row_ = key;
}

void BTreeWriter::AddEntry(SqlRecord* entry) {
  const std::span<const std::string_view> parts = entry->Parts();
  const size_t payload = SizeOf(parts), local = LocalBytes(payload);
  cell_.resize(kMostVarint + local + kSqlChildBytes);
  const char* const end = PutPayload(PutSqlVarint(cell_.data(), payload), parts, payload, local);
  cell_.resize(static_cast<size_t>(end - cell_.data()));
  AddCell(0, 0, cell_);
}

void BTreeWriter::AddCell(size_t level, uint32_t child, std::string_view cell) {
  Level& l = At(level);
  if (!Fits(level, l.now, cell.size() + (level == 0 ? 0 : kSqlChildBytes))) {
    l.full = l.now;
    l.full_right = child;
    l.divider = cell;
    l.waits = true;
    l.now.cells = 0;
    l.now.content = kSqlPageBytes;
    return;
  }
  PutCell(level, child, cell, &l.now);
  if (l.waits) FlushFull(level);
}

void BTreeWriter::FlushFull(size_t level) {
  Level& l = levels_[level];
  l.waits = false;
  AddCell(level + 1, Write(level, l.full_right, &l.full), l.divider);
}

/// There are no more cells: the page behind a full one gets one of its own.
void BTreeWriter::FillBehindFull(size_t level) {
  Level& l = levels_[level];
  PutCell(level, l.full_right, l.divider, &l.now);
  Page& full = l.full;
  const char* const pointers = full.bytes.data() + HeadBytes(level);
  const uint32_t end = full.cells > 1 ? GetSqlBig(pointers + kSqlPointerBytes * (full.cells - 2), kSqlPointerBytes)
                                      : static_cast<uint32_t>(kSqlPageBytes);
  std::string_view last(full.bytes.data() + full.content, end - full.content);
  if (level > 0) {
    l.full_right = GetSqlBig(last.data(), kSqlChildBytes);
    last.remove_prefix(kSqlChildBytes);
  }
  l.divider = last;
  --full.cells;
  full.content = end;
  FlushFull(level);
}

void BTreeWriter::FillHead(size_t level, uint32_t right, Page* page) const {
  char* const head = page->bytes.data();
  head[0] = static_cast<char>((kind_ == Kind::kTable ? kSqlTablePage : kSqlIndexPage) + (level == 0 ? kSqlLeaf : 0));
  PutSqlBig(head + kSqlPageFree, 0, 2);
  PutSqlBig(head + kSqlPageCells, page->cells, 2);
  PutSqlBig(head + kSqlPageContent, page->content, 2);
  head[kSqlPageFragments] = 0;
  if (level > 0) PutSqlBig(head + kSqlPageRight, right, kSqlChildBytes);
  const size_t end = HeadBytes(level) + kSqlPointerBytes * page->cells;
  std::memset(head + end, 0, page->content - end);
}

uint32_t BTreeWriter::Write(size_t level, uint32_t right, Page* page) {
  FillHead(level, right, page);
  uint32_t number = 0;
  std::memcpy(file_->Add(&number), page->bytes.data(), kSqlPageBytes);
  page->cells = 0;
  page->content = kSqlPageBytes;
  return number;
}

void BTreeWriter::Finish() {
  uint32_t right = 0;
  for (size_t level = 0; level < levels_.size(); ++level) {
    if (levels_[level].waits) FillBehindFull(level);
    Page& last = levels_[level].now;
    if (level + 1 < levels_.size()) {
      right = Write(level, right, &last);
    } else {
      FillHead(level, right, &last);
      file_->Replace(root_, last.bytes.data());
    }
  }
  levels_.clear();
}

}  // namespace msprobe
