#include "report/rows/row_sink.h"

#include "sheet/table.h"

namespace msprobe {
namespace {

class TableSink : public RowSink {
 public:
  TableSink(const RowSettings& options, std::unique_ptr<ResultTable> table)
      : columns_(options), table_(std::move(table)) {}

  void AppendOp(const OpDiff& op, int stack, OpBlock* block) const override {
    const RowSettings& options = columns_.options();
    std::vector<Highlight> highlights;
    if (options.highlight) highlights = HighlightOp(op, options.mode);
    RowCells row;
    for (size_t i = 0; i < op.rows_used; ++i) {
      const Highlight* highlight = options.highlight ? &highlights[i] : nullptr;
      columns_.Fill(op, i, i == StackRow(op) ? stack : -1, highlight, &row);
      table_->AppendRow(row.cells, highlight ? highlight->color : Cell::Color::kNone, block);
    }
  }
  Status Take(OpBlock&& block) override { return table_->Take(std::move(block)); }
  Status Commit() override { return table_->Commit(); }
  const std::vector<std::string>& paths() const override { return table_->paths(); }

 private:
  const RowColumns columns_;
  const std::unique_ptr<ResultTable> table_;
};

SharedTexts StackTexts(const StackFile& stacks) {
  auto out = std::make_shared<std::vector<std::string>>();
  for (size_t i = 0; i < stacks.size(); ++i) out->push_back(StackCell(stacks.Frames(static_cast<uint32_t>(i))));
  return out;
}

}  // namespace

StatusOr<std::unique_ptr<RowSink>> CreateTableSink(const RowSettings& options, const std::string& path,
                                                   uint64_t total_rows) {
  TableSpec spec;
  spec.path = path;
  spec.columns = RowColumns(options).titles();
  if (options.older && !options.grads) spec.sheet = "Sheet";  // as release 8.1.1
  if (options.stacks) spec.shared = StackTexts(*options.stacks);
  MSP_ASSIGN_OR_RETURN(std::unique_ptr<ResultTable> table, CreateTable(spec, total_rows));
  return std::unique_ptr<RowSink>(std::make_unique<TableSink>(options, std::move(table)));
}

}  // namespace msprobe
