// SPDX-License-Identifier: Apache-2.0
#include "input/block_readers.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "input/file_bytes.hpp"
#include "input/giant_line_reader.hpp"
#include "input/line_ends.hpp"

namespace millrace::preprocess {

sequential_reader::sequential_reader(std::filesystem::path path,
                                     std::unique_ptr<byte_source> source, std::uint64_t offset,
                                     const read_limits& limits, std::vector<std::byte> begun)
    : path_(std::move(path)),
      source_(std::move(source)),
      limits_(limits),
      offset_(offset),
      rest_(std::move(begun)) {}

// Appends to a block that already has `used` bytes. Stops when the block has `target` bytes, or
// when the input ends or fails. Returns the new number of bytes in the block.
std::size_t sequential_reader::append(byte_block& block, std::size_t used, std::size_t target) {
  block.buffer.reserve(target + text_padding_bytes, used);
  try {
    while (used < target && !ended_) {
      const std::size_t n = source_->read({block.buffer.data() + used, target - used});
      ended_ = n == 0;
      used += n;
    }
  } catch (...) {
    // First deliver the lines before the error. If one of these lines is bad, it must be reported
    // before this error.
    failure_ = std::current_exception();
  }
  return used;
}

// Reads until the block has a line end at which it can be cut, or until the input ends.
bool sequential_reader::next(byte_block& block) {
  if (failure_) std::rethrow_exception(failure_);
  block.unread.reset();
  block.giant.reset();
  block.has_rows = false;
  block.rows_end = 0;
  block.begin = offset_;
  std::size_t used = rest_.size();
  block.buffer.reserve(std::max(limits_.block_bytes, used) + text_padding_bytes, 0);
  if (used != 0) std::memcpy(block.buffer.data(), rest_.data(), used);
  rest_.clear();
  for (std::size_t target = std::max({limits_.block_bytes, used, std::size_t{1}});;
       target += target) {
    used = append(block, used, target);
    const std::string_view text(reinterpret_cast<const char*>(block.buffer.data()), used);
    const std::size_t cut = ended_ ? used : last_line(text, false);
    if (cut != 0 || ended_) {
      finish(block, used, cut);
      return block.end != block.begin;
    }
    if (failure_) std::rethrow_exception(failure_);
    if (used > limits_.giant_bytes) {
      follow_giant(block, used);
      return true;
    }
  }
}

void sequential_reader::finish(byte_block& block, std::size_t used, std::size_t cut) {
  block.text_at = 0;
  block.text_bytes = cut;
  block.mark_bytes = 0;
  if (offset_ == 0) block.mark_bytes = mark_bytes_of(block.text());
  rest_.assign(block.buffer.data() + cut, block.buffer.data() + used);
  offset_ += cut;
  block.end = offset_;
}

// Reads the rest of a giant line. Called if all bytes in the block are the beginning of one line.
void sequential_reader::follow_giant(byte_block& block, std::size_t used) {
  const line_place place{path_, offset_};
  auto followed = follow_giant_line(*source_, {block.buffer.data(), used}, place, limits_);
  block.text_at = block.text_bytes = block.mark_bytes = 0;
  rest_ = std::move(followed.rest);
  ended_ = followed.ended;
  offset_ += followed.line.size_bytes;
  block.giant = std::move(followed.line);
  block.end = offset_;
}

namespace {

// The last line of a span usually ends less than this many bytes after the span's end.
constexpr std::size_t tail_guess = std::size_t{8} << 10;

/// The text of an input from the start of a span on, as far as extend() has read it.
class growing_text {
 public:
  growing_text(byte_buffer& buffer, byte_source& source) : buffer_(buffer), source_(source) {}

  /// Reads until the text has `size` bytes or the input ends.
  void extend(std::size_t size) {
    buffer_.reserve(size + text_padding_bytes, size_);
    while (size_ < size && !ended_) {
      const std::size_t n = source_.read({buffer_.data() + size_, size - size_});
      ended_ = n == 0;
      size_ += n;
    }
  }

  std::string_view view() const noexcept {
    return {reinterpret_cast<const char*>(buffer_.data()), size_};
  }
  bool ended() const noexcept { return ended_; }

 private:
  byte_buffer& buffer_;
  byte_source& source_;
  std::size_t size_ = 0;
  bool ended_ = false;
};

/// Checks that the bytes read so far are consistent with the planned size of the input.
///
/// @param read   offset in the input at which the bytes read so far end
/// @param ended  true if the input ended there
void expect_size(const seekable_input& input, std::uint64_t read, bool ended) {
  const std::uint64_t expected = input.size();
  if (ended && read < expected) throw became_shorter(input.file().path, read);
  if (read > expected) throw became_longer(input.file().path, expected);
}

// Sets the text of the block to the bytes [first, cut) of its buffer. If `first` equals `cut`, the
// block has no text.
void set_text(byte_block& block, const unread_span& span, std::size_t first, std::size_t cut) {
  block.begin = span.begin + first;
  block.end = span.begin + cut;
  block.text_at = first;
  block.text_bytes = cut - first;
  block.mark_bytes = block.begin == 0 ? mark_bytes_of(block.text()) : 0;
}

}  // namespace

void read_rows(byte_block& block, const read_limits& limits, row_text& rows, std::uint64_t end) {
  block.giant.reset();
  block.has_rows = true;
  block.begin = rows.row();
  block.text_at = block.mark_bytes = 0;
  block.text_bytes = rows.read(block.buffer, end, limits.block_bytes);
  block.end = rows.row();
  block.rows_end = block.end < end ? end : 0;
}

bool read_more_rows(byte_block& block, const read_limits& limits, row_text& rows) {
  if (block.rows_end == 0) return false;
  rows.expect_moderate();
  read_rows(block, limits, rows, block.rows_end);
  return true;
}

void read_span(byte_block& block, const read_limits& limits, row_text& rows) {
  if (!block.unread) return;
  const unread_span span = *std::exchange(block.unread, std::nullopt);
  if (span.from->table()) {
    rows.go_to(span.from->table(), span.begin, span.page_offset);
    return read_rows(block, limits, rows, span.end);
  }
  block.has_rows = false;
  block.rows_end = 0;
  const auto length = static_cast<std::size_t>(span.end - span.begin);
  const auto source = span.from->open_at(span.begin);
  growing_text text(block.buffer, *source);
  const auto extend = [&](std::size_t size) {
    text.extend(size);
    expect_size(*span.from, span.begin + text.view().size(), text.ended());
  };
  extend(length + tail_guess);

  block.giant.reset();
  block.mark_bytes = 0;
  std::size_t first = 0;
  if (!span.at_line) {
    // A line that begins exactly at the end of this span still belongs to this span. The next span
    // skips that line, because its reader cannot see the line end before the line.
    first = next_line(text.view().substr(0, length + 1), 0, true);
    if (first == text.view().npos || first > length) return set_text(block, span, 0, 0);
  }
  std::size_t cut = text.view().npos;
  if (length != 0 && text.view().substr(length - 1, 2) == "\r\n") cut = length + 1;
  while (cut == text.view().npos) {
    cut = next_line(text.view(), length, text.ended());
    if (cut != text.view().npos) break;
    if (text.ended()) {
      cut = text.view().size();
      break;
    }
    if (text.view().size() - first > limits.giant_bytes) {
      const std::size_t begin = std::max(first, last_line(text.view().substr(0, length), true));
      if (text.view().size() - begin > limits.giant_bytes) {
        set_text(block, span, first, begin);
        const auto head = std::as_bytes(std::span(text.view().substr(begin)));
        const line_place place{span.from->file().path, span.begin + begin, span.from->fd()};
        auto followed = follow_giant_line(*source, head, place, limits);
        block.giant = std::move(followed.line);
        block.end += block.giant->size_bytes;
        expect_size(*span.from, block.end + followed.rest.size(), followed.ended);
        return;
      }
    }
    extend(length + 4 * (text.view().size() - length));
  }
  set_text(block, span, first, cut);
}

}  // namespace millrace::preprocess
