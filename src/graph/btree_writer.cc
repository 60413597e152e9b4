#include "graph/btree_writer.h"

#include <cstring>

namespace msprobe {
namespace {

constexpr size_t kChildBytes = 4, kPointerBytes = 2;
constexpr size_t kOverflowText = kSqlPageBytes - kChildBytes;  // of an overflow page
// How much of a payload stays in its cell, as the file format has it.
constexpr size_t kMostInTable = kSqlPageBytes - 35;
constexpr size_t kMostInIndex = (kSqlPageBytes - 12) * 64 / 255 - 23;
constexpr size_t kLeastLocal = (kSqlPageBytes - 12) * 32 / 255 - 23;

void PutBig(char* out, uint32_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) out[i] = static_cast<char>(v >> (8 * (bytes - 1 - i)));
}

uint32_t GetBig(const char* in, int bytes) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; ++i) v = v << 8 | static_cast<unsigned char>(in[i]);
  return v;
}

size_t HeadBytes(size_t level) { return level == 0 ? 8 : 12; }

template <typename Page>
bool Fits(size_t level, const Page& page, size_t cell) {
  return HeadBytes(level) + kPointerBytes * (page.cells + size_t{1}) + cell <= page.content;
}

/// Where a cell of this size goes.
template <typename Page>
char* Room(size_t level, size_t cell, Page* page) {
  page->content -= static_cast<uint32_t>(cell);
  PutBig(page->bytes.data() + HeadBytes(level) + kPointerBytes * page->cells++, page->content, kPointerBytes);
  return page->bytes.data() + page->content;
}

template <typename Page>
void PutCell(size_t level, uint32_t child, std::string_view cell, Page* page) {
  const size_t head = level == 0 ? 0 : kChildBytes;
  char* const out = Room(level, head + cell.size(), page);
  if (head > 0) PutBig(out, child, kChildBytes);
  std::memcpy(out + head, cell.data(), cell.size());
}

size_t SizeOf(std::span<const std::string_view> parts) {
  size_t size = 0;
  for (std::string_view part : parts) size += part.size();
  return size;
}

}  // namespace

size_t BTreeWriter::LocalBytes(size_t payload) const {
  const size_t most = kind_ == Kind::kTable ? kMostInTable : kMostInIndex;
  if (payload <= most) return payload;
  const size_t local = kLeastLocal + (payload - kLeastLocal) % kOverflowText;
  return local <= most ? local : kLeastLocal;
}

uint32_t BTreeWriter::WriteOverflow(std::string_view rest) {
  uint32_t first = 0;
  while (!rest.empty()) {
    uint32_t number = 0;
    char* const page = file_->Add(&number);
    if (first == 0) first = number;
    const size_t size = std::min(rest.size(), kOverflowText);
    PutBig(page, size < rest.size() ? file_->next() : 0, kChildBytes);
    std::memcpy(page + kChildBytes, rest.data(), size);
    std::memset(page + kChildBytes + size, 0, kOverflowText - size);
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
  PutBig(out + local, WriteOverflow(std::string_view(joined_).substr(local)), kChildBytes);
  return out + local + kChildBytes;
}

BTreeWriter::Level& BTreeWriter::At(size_t level) {
  while (levels_.size() <= level) levels_.emplace_back();
  return levels_[level];
}

void BTreeWriter::AddRow(int64_t row_id, SqlRecord* row) {
  const std::span<const std::string_view> parts = row->Parts();
  const size_t payload = SizeOf(parts), local = LocalBytes(payload);
  const auto key = static_cast<uint64_t>(row_id);
  const size_t cell = SqlVarintSize(payload) + SqlVarintSize(key) + local + (local < payload ? kChildBytes : size_t{0});
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
  cell_.resize(kMostVarint + local + kChildBytes);
  const char* const end = PutPayload(PutSqlVarint(cell_.data(), payload), parts, payload, local);
  cell_.resize(static_cast<size_t>(end - cell_.data()));
  AddCell(0, 0, cell_);
}

void BTreeWriter::AddCell(size_t level, uint32_t child, std::string_view cell) {
  Level& l = At(level);
  if (!Fits(level, l.now, cell.size() + (level == 0 ? 0 : kChildBytes))) {
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
  const uint32_t end = full.cells > 1 ? GetBig(pointers + kPointerBytes * (full.cells - 2), kPointerBytes)
                                      : static_cast<uint32_t>(kSqlPageBytes);
  std::string_view last(full.bytes.data() + full.content, end - full.content);
  if (level > 0) {
    l.full_right = GetBig(last.data(), kChildBytes);
    last.remove_prefix(kChildBytes);
  }
  l.divider = last;
  --full.cells;
  full.content = end;
  FlushFull(level);
}

void BTreeWriter::FillHead(size_t level, uint32_t right, Page* page) const {
  constexpr int kLeaf = 8, kTablePage = 5, kIndexPage = 2;
  char* const head = page->bytes.data();
  head[0] = static_cast<char>((kind_ == Kind::kTable ? kTablePage : kIndexPage) + (level == 0 ? kLeaf : 0));
  PutBig(head + 1, 0, 2);
  PutBig(head + 3, page->cells, 2);
  PutBig(head + 5, page->content, 2);
  head[7] = 0;
  if (level > 0) PutBig(head + 8, right, kChildBytes);
  const size_t end = HeadBytes(level) + kPointerBytes * page->cells;
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
