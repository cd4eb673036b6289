// SPDX-License-Identifier: Apache-2.0
#include "input/sequential_reader.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

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

// Appends to a block of `used` bytes until it has `target` bytes, or the input ends or fails.
// Returns the new number of bytes.
std::size_t sequential_reader::append(byte_block& block, std::size_t used, std::size_t target) {
  block.buffer.reserve(target + text_padding_bytes, used);
  try {
    while (used < target && !ended_) {
      const std::size_t n = source_->read({block.buffer.data() + used, target - used});
      ended_ = n == 0;
      used += n;
    }
  } catch (...) {
    // Deliver the lines before the error first: one of them may be bad and must be reported first.
    failure_ = std::current_exception();
  }
  return used;
}

// Reads until there is a line end at which to cut, or the input ends.
bool sequential_reader::next(byte_block& block) {
  if (failure_) std::rethrow_exception(failure_);
  block.unread.reset();
  block.giant.reset();
  block.begin_bytes = offset_;
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
      return block.end_bytes != block.begin_bytes;
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
  block.end_bytes = offset_;
}

// Called if everything read so far is the beginning of one line.
void sequential_reader::follow_giant(byte_block& block, std::size_t used) {
  const line_place place{path_, offset_};
  auto followed = follow_giant_line(*source_, {block.buffer.data(), used}, place, limits_);
  block.text_at = block.text_bytes = block.mark_bytes = 0;
  rest_ = std::move(followed.rest);
  ended_ = followed.ended;
  offset_ += followed.line.size_bytes;
  block.giant = std::move(followed.line);
  block.end_bytes = offset_;
}

}  // namespace millrace::preprocess
