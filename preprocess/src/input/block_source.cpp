// SPDX-License-Identifier: Apache-2.0
#include "input/block_source.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>

#include "input/file_bytes.hpp"
#include "input/line_ends.hpp"

namespace millrace::preprocess {

block_source::block_source(std::span<const input_file> inputs, const read_range& range,
                           const read_limits& limits)
    : inputs_(inputs), range_(range), limits_(limits), input_(range.begin.input) {
  limits_.block_bytes = std::max<std::size_t>(limits_.block_bytes, 1);
  // The input from `count_from` to `begin` counts as read, because an earlier run has read it.
  const text_place from = range.count_from;
  for (std::size_t i = from.input; i < input_; ++i) finished_bytes_ += inputs[i].size_bytes;
  if (from.input < input_ && inputs[from.input].compressed_with == compression::none) {
    finished_bytes_ -= std::min(finished_bytes_, from.offset);
  }
}

bool block_source::next(byte_block& block) {
  for (;; ++input_) {
    const bool inside =
        input_ < range_.end.input || (input_ == range_.end.input && range_.end.offset != 0);
    if (!inside || input_ >= inputs_.size()) return false;
    if (!seekable_ && !sequential_) open(input_);
    block.input = input_;
    const bool more = spans_      ? next_rows(block)
                      : seekable_ ? next_span(block)
                                  : sequential_->next(block);
    const std::uint64_t done =
        seekable_ ? seekable_->compressed_bytes(offset_) : sequential_->position_bytes();
    block.read_bytes = finished_bytes_ + done - skipped_bytes_;
    if (more) return true;
    if (sequential_ && inputs_[input_].regular) {
      expect_whole(inputs_[input_].path, done, inputs_[input_].size_bytes);
    }
    finished_bytes_ += done;
    seekable_.reset();
    set_reading(nullptr);
    sequential_.reset();
  }
}

void block_source::open(std::size_t input) {
  const input_file& file = inputs_[input];
  const bool first = input == range_.begin.input;
  offset_ = first ? range_.begin.offset : 0;
  at_line_ = !first || range_.at_line;
  seekable_ = seekable_input::open(file, limits_.largest_part_bytes());
  rows_.reset();
  rows_end_ = 0;
  spans_.reset();
  if (seekable_) {
    if (seekable_->table()) {
      spans_.emplace(seekable_->table(), offset_, limits_.largest_part_bytes());
    }
    if (input == range_.count_from.input) {
      skipped_bytes_ = seekable_->compressed_bytes(range_.count_from.offset);
    }
    return;
  }
  auto source = open_input(file);
  set_reading(source.get());
  auto begun = pass_over(*source, offset_);
  sequential_.emplace(file.path, std::move(source), offset_, limits_, std::move(begun));
}

void block_source::set_reading(byte_source* source) {
  const std::scoped_lock lock(mutex_);
  reading_ = source;
  if (source != nullptr && cancelled_) source->cancel();
}

void block_source::cancel() noexcept {
  const std::scoped_lock lock(mutex_);
  cancelled_ = true;
  if (reading_ != nullptr) reading_->cancel();
}

// Skips the first `bytes` bytes of the text, which an earlier run has read, and checks that these
// bytes are unchanged. Without this check, the output could mix two corpora. This function may also
// read one more byte. If so, it returns that byte; otherwise it returns nothing.
std::vector<std::byte> block_source::pass_over(byte_source& source, std::uint64_t bytes) const {
  std::vector<std::byte> chunk(std::min<std::uint64_t>(bytes, limits_.block_bytes));
  std::uint32_t crc = 0;
  char last = '\n';
  for (std::uint64_t left = bytes; left > 0;) {
    const auto part = std::span(chunk).first(std::min<std::uint64_t>(left, chunk.size()));
    const std::size_t n = source.read(part);
    if (n == 0) break;
    crc = formats::crc32c(part.first(n), crc);
    last = static_cast<char>(part[n - 1]);
    left -= n;
  }
  if (bytes != 0 && crc != range_.crc32c) {
    throw config_error(
        fmt::format("--resume: the first {} bytes of {} differ from those read before; pass the "
                    "same input, or --overwrite to start again",
                    bytes, display_path(inputs_[input_]).string()));
  }
  // If the earlier run stopped in the middle of a line, the input ended there. That line must not
  // be longer now.
  std::vector<std::byte> behind(last == '\n' ? 0 : 1);
  if (!behind.empty()) behind.resize(source.read(behind));
  if (!behind.empty() && !ends_line(last, static_cast<char>(behind.front()))) {
    throw config_error(
        fmt::format("--resume: when {} was read before, it ended in the middle of a line, at byte "
                    "{}, and that line is longer now; pass --overwrite to start again",
                    display_path(inputs_[input_]).string(), bytes));
  }
  return behind;
}

std::uint64_t block_source::end_of(std::size_t input) const {
  const std::uint64_t size = seekable_->size();
  return input == range_.end.input ? std::min(size, range_.end.offset) : size;
}

bool block_source::next_rows(byte_block& block) {
  const auto& table = seekable_->table();
  if (rows_ && rows_->row() < rows_end_) {
    block.unread.reset();
    read_rows(block, limits_, *rows_, rows_end_);
    block.rows_end = 0;  // this thread reads them
    offset_ = block.end;
    return true;
  }
  const auto span = spans_->next(end_of(input_), limits_.block_bytes);
  if (!span) return false;
  if (span->separate) {
    block.unread = unread_span{seekable_, span->begin, span->end, true, span->page_offset};
    offset_ = span->end;
    return true;
  }
  if (!rows_) rows_.emplace(table, span->begin);
  if (rows_->row() != span->begin) rows_->go_to(table, span->begin);
  rows_end_ = span->end;
  return next_rows(block);
}

bool block_source::next_span(byte_block& block) {
  const std::uint64_t end = end_of(input_);
  // If the run resumes exactly at `end`, a line that begins at `end` still belongs to this run. In
  // an uninterrupted run, that line belongs to the last span before `end`.
  const bool line_at_end = at_line_ && offset_ == end && end < seekable_->size();
  if (offset_ >= end && !line_at_end) return false;
  const std::uint64_t span_end = std::min(end, seekable_->span_end(offset_, limits_.block_bytes));
  block.unread = unread_span{seekable_, offset_, span_end, at_line_};
  offset_ = span_end;
  at_line_ = false;
  return true;
}

}  // namespace millrace::preprocess
