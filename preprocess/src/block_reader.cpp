// SPDX-License-Identifier: Apache-2.0
#include "block_reader.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>

namespace millrace::preprocess {
namespace {
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// The end of the last whole line of `text`, of which the first `searched` bytes have no line end.
std::optional<std::size_t> cut_after(std::string_view text, std::size_t searched) {
  const auto last = [&](char c, std::size_t end) -> std::optional<std::size_t> {
    if (end <= searched) return std::nullopt;
    const void* at = ::memrchr(text.data() + searched, c, end - searched);
    if (at == nullptr) return std::nullopt;
    return static_cast<std::size_t>(static_cast<const char*>(at) - text.data()) + 1;
  };
  if (const auto cut = last('\n', text.size())) return cut;
  // A '\r' at the very end may have its '\n' in bytes not yet read, so it is no place to cut, and
  // the next search must look at it again.
  if (searched != 0) --searched;
  return text.empty() ? std::nullopt : last('\r', text.size() - 1);
}

}  // namespace

block_reader::block_reader(std::span<const input_file> inputs, std::size_t block_bytes)
    : inputs_(inputs), block_bytes_(std::max<std::size_t>(block_bytes, byte_order_mark.size())) {}

bool block_reader::next(byte_block& block) {
  for (; input_ < inputs_.size(); ++input_) {
    if (!source_) open_next();
    fill(block);
    const std::uint64_t position = source_->position_bytes();
    block.read_bytes = finished_ + position;
    if (block.size_bytes != 0) return true;
    finished_ += position;
    source_.reset();
  }
  return false;
}

void block_reader::open_next() {
  source_ = open_input(inputs_[input_]);
  ended_ = false;
  failure_ = nullptr;
  offset_ = 0;
  rest_.clear();
}

// Appends to a block that has `used` bytes until it has `target`, or the input ends or fails.
std::size_t block_reader::append(byte_block& block, std::size_t used, std::size_t target) {
  const bool at_start = offset_ == 0 && used == 0;
  try {
    while (used < target && !ended_) {
      const std::size_t n = source_->read({block.buffer.data() + used, target - used});
      ended_ = n == 0;
      used += n;
    }
  } catch (...) {
    // The lines before the damage come first: one of them may be bad, and is told then.
    failure_ = std::current_exception();
  }
  const std::string_view text(reinterpret_cast<const char*>(block.buffer.data()), used);
  if (!at_start || !text.starts_with(byte_order_mark)) return used;
  used -= byte_order_mark.size();
  std::memmove(block.buffer.data(), block.buffer.data() + byte_order_mark.size(), used);
  offset_ = block.offset_bytes = byte_order_mark.size();
  return used;
}

// Reads until `block` has a line end to cut at, or the input ends.
void block_reader::fill(byte_block& block) {
  if (failure_) std::rethrow_exception(failure_);
  block.input = input_;
  block.offset_bytes = offset_;
  std::size_t used = rest_.size();
  block.buffer.reserve(std::max(block_bytes_, used) + record_parser::padding_bytes, 0);
  if (used != 0) std::memcpy(block.buffer.data(), rest_.data(), used);
  rest_.clear();

  std::size_t searched = 0;
  for (std::size_t target = std::max(block_bytes_, used);; target += target) {
    block.buffer.reserve(target + record_parser::padding_bytes, used);
    used = append(block, used, target);
    const std::string_view text(reinterpret_cast<const char*>(block.buffer.data()), used);
    const auto cut = ended_ ? std::optional(used) : cut_after(text, searched);
    if (cut) {
      rest_.assign(block.buffer.data() + *cut, block.buffer.data() + used);
      block.size_bytes = *cut;
      offset_ += *cut;
      return;
    }
    if (failure_) std::rethrow_exception(failure_);
    searched = used;
  }
}

}  // namespace millrace::preprocess
