// SPDX-License-Identifier: Apache-2.0
#include "input/table_input.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/error.hpp>

#include "input/file_bytes.hpp"

namespace millrace::preprocess {
namespace {

// The paths of the columns that a run reads from this file.
std::vector<parquet::column_path> paths_in(const parquet::file& file,
                                           const table_columns& columns) {
  if (columns.all) return columns.paths;
  const auto names = file.column_names();
  std::vector<parquet::column_path> found;
  for (const parquet::column_path& path : columns.paths) {
    if (std::ranges::find(names, path.front()) != names.end()) found.push_back(path);
  }
  if (!found.empty()) return found;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw config_error(command::one_line(
      fmt::format("{}: none of the columns holds conversations; its columns are {}",
                  file.path().string(), list)));
}

std::uint64_t portion(std::uint64_t total, std::uint64_t part, std::uint64_t of) {
  return static_cast<std::uint64_t>(static_cast<double>(total) * static_cast<double>(part) /
                                    static_cast<double>(of));
}

/// Appends to a byte_buffer.
class buffer_sink final : public parquet::text_sink {
 public:
  buffer_sink(byte_buffer& buffer, std::size_t used) : buffer_(buffer), used_(used) {}

  char* room(std::size_t bytes) override {
    buffer_.reserve(used_ + bytes + text_padding_bytes, used_);
    return reinterpret_cast<char*>(buffer_.data()) + used_;
  }
  void filled(std::size_t bytes) override { used_ += bytes; }
  std::size_t used() const noexcept { return used_; }

 private:
  byte_buffer& buffer_;
  std::size_t used_;
};

/// The text of a table from a row to the end.
class table_source final : public byte_source {
 public:
  table_source(std::shared_ptr<const table_input> table, std::uint64_t row)
      : table_(std::move(table)), text_(table_, row) {}

  std::size_t read(std::span<std::byte> out) override {
    if (given_ == held_) {
      given_ = 0;
      held_ = text_.read(buffer_, table_->row_count(), piece_bytes);
    }
    const std::size_t n = std::min(out.size(), held_ - given_);
    if (n != 0) std::memcpy(out.data(), buffer_.data() + given_, n);
    given_ += n;
    return n;
  }
  std::uint64_t position_bytes() const noexcept override { return table_->byte_of(text_.row()); }
  void cancel() noexcept override {}  // reads do not wait

 private:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 18;

  std::shared_ptr<const table_input> table_;
  row_text text_;
  byte_buffer buffer_;
  std::size_t held_ = 0;
  std::size_t given_ = 0;
};

}  // namespace

table_input::table_input(const input_file& file)
    : file_(parquet::file::open(file.path)), columns_(file_, paths_in(*file_, *file.columns)) {
  expect_whole(file.path, file_->size_bytes(), file.size_bytes);
  std::uint64_t latest = 0;
  for (std::size_t group = 0; group < file_->row_groups().size(); ++group) {
    latest = std::max(latest, columns_.file_offset(group));
    group_bytes_.push_back(latest);
  }
}

// The row group that has a row. For the end of the table, the number of row groups.
std::size_t table_input::group_of(std::uint64_t row) const {
  const auto groups = file_->row_groups();
  if (row >= row_count()) return groups.size();
  // Of several groups that begin with the same row, all but the last are empty.
  const auto behind =
      std::ranges::upper_bound(groups, row, {}, &parquet::file::row_group::first_row);
  return static_cast<std::size_t>(behind - groups.begin()) - 1;
}

std::uint64_t table_input::row_before(std::uint64_t file_byte) const {
  const auto behind = std::ranges::upper_bound(group_bytes_, file_byte);
  if (behind == group_bytes_.begin()) return 0;
  return file_->row_groups()[static_cast<std::size_t>(behind - group_bytes_.begin()) - 1].first_row;
}

std::uint64_t table_input::byte_of(std::uint64_t row) const {
  if (row == 0) return 0;
  const std::size_t group = group_of(row);
  if (group == group_bytes_.size()) return file_->size_bytes();
  const std::uint64_t begin = group_bytes_[group];
  const std::uint64_t end =
      group + 1 < group_bytes_.size() ? group_bytes_[group + 1] : file_->size_bytes();
  const auto& [first, rows] = file_->row_groups()[group];
  return begin + portion(end - begin, row - first, rows);
}

std::unique_ptr<byte_source> table_input::open_at(std::uint64_t row) const {
  return std::make_unique<table_source>(std::make_shared<table_input>(*this), row);
}

row_spans::row_spans(std::shared_ptr<const table_input> table, std::uint64_t row,
                     std::uint64_t most_bytes)
    : table_(std::move(table)), row_(row), most_bytes_(most_bytes) {}

void row_spans::find_cuts(std::size_t group) {
  if (cut_group_ == group) return;
  cuts_ = table_->columns_.cut_rows(group);
  for (parquet::row_cut& cut : cuts_) cut.row += table_->file_->row_groups()[group].first_row;
  cut_group_ = group;
}

std::optional<row_span> row_spans::next(std::uint64_t end, std::uint64_t least_bytes) {
  end = std::min(end, table_->row_count());
  if (row_ >= end) return std::nullopt;
  row_span span{.begin = row_, .end = row_};
  std::uint64_t bytes = 0;
  while (span.end < end && bytes < least_bytes) {
    const std::size_t group = table_->group_of(span.end);
    const auto& [first, rows] = table_->file_->row_groups()[group];
    const std::uint64_t text_bytes = table_->columns_.text_bytes(group);
    find_cuts(group);
    const auto next = std::ranges::upper_bound(cuts_, span.end, {}, &parquet::row_cut::row);
    const std::uint64_t cut = next == cuts_.end() ? first + rows : next->row;
    if (span.end == span.begin && (next - 1)->row == span.begin) {
      span.page_offset = (next - 1)->page_offset;
    }
    const std::uint64_t more = portion(text_bytes, cut - span.end, rows);
    if (more > most_bytes_) {
      if (bytes != 0) break;
      const std::uint64_t step = std::max<std::uint64_t>(1, portion(rows, least_bytes, text_bytes));
      span.end = std::min(cut, span.end + step);
      span.separate = false;
      break;
    }
    bytes += more;
    span.end = cut;
  }
  span.end = std::min(span.end, end);
  row_ = span.end;
  return span;
}

void row_text::go_to(std::shared_ptr<const table_input> table, std::uint64_t row,
                     std::uint64_t page_offset) {
  if (table != table_) rows_.reset();
  table_ = std::move(table);
  row_ = row;
  page_offset_ = page_offset;
  bytes_ = 0;
  group_.reset();
}

void row_text::expect_moderate() const {
  if (bytes_ <= most_bytes) return;
  throw format_error(
      table_->file_->path(), table_->byte_of(row_),
      fmt::format(
          "the rows before row {} expand to more than {} MiB of text without a place to cut; "
          "write the file again with smaller pages, or without a dictionary",
          row_, most_bytes >> 20));
}

std::size_t row_text::read(byte_buffer& buffer, std::uint64_t end, std::size_t enough_bytes) {
  end = std::min(end, table_->row_count());
  buffer_sink sink(buffer, 0);
  while (row_ < end && sink.used() < enough_bytes) {
    const std::size_t group = table_->group_of(row_);
    const auto& [first, rows] = table_->file_->row_groups()[group];
    if (group != group_) {
      const parquet::row_cut from{row_ - first, std::exchange(page_offset_, 0)};
      if (rows_) {
        rows_->restart(group, from);
      } else {
        rows_.emplace(table_->columns_, group, from);
      }
      group_ = group;
    }
    const std::uint64_t read =
        rows_->read(sink, std::min(end, first + rows) - row_, enough_bytes - sink.used());
    row_ += read;
    if (read == 0) {
      throw format_error(table_->file_->path(), table_->byte_of(row_),
                         fmt::format("row group {} ends before row {}", group, row_));
    }
  }
  bytes_ += sink.used();
  return sink.used();
}

}  // namespace millrace::preprocess
