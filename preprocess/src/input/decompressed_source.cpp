// SPDX-License-Identifier: Apache-2.0
#include "input/decompressed_source.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include <millrace/error.hpp>

namespace millrace::preprocess {
namespace {
constexpr std::size_t compressed_chunk_bytes = std::size_t{256} << 10;
}

decompressed_source::decompressed_source(std::unique_ptr<byte_source> compressed,
                                         compression compressed_with, std::filesystem::path name,
                                         restart_point from, std::span<const restart_point> later,
                                         std::uint64_t most_window_bytes)
    : compressed_(std::move(compressed)),
      compression_(compressed_with),
      name_(std::move(name)),
      decoder_(make_decoder(compressed_with, name_.string(), most_window_bytes)),
      buffer_(compressed_chunk_bytes),
      text_(from.text_offset),
      later_(later) {}

std::size_t decompressed_source::read(std::span<std::byte> out) {
  assert(!out.empty());
  if (!problem_.empty()) fail(problem_);
  if (!later_.empty()) {
    // Do not return text after the next restart point before that point is verified.
    const std::uint64_t up_to_point = later_.front().text_offset - text_;
    out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), up_to_point)));
  }
  std::span<std::byte> left = out;
  while (left.size() == out.size() && problem_.empty() && (inside_ || next_unit()))
    decompress(left);
  const std::size_t given = out.size() - left.size();
  text_ += given;
  if (given == 0 && !problem_.empty()) fail(problem_);
  if (!later_.empty() && given != 0 && text_ == later_.front().text_offset) reach_point();
  return given;
}

// Moves in_ to the start of the next unit. Returns false at the end of the input.
bool decompressed_source::next_unit() {
  if (!pass_padding()) {
    check_points();
    if (!later_.empty()) fail("the text is shorter than the size stored in the compressed file");
    return false;
  }
  check_points();
  decoder_->start();
  inside_ = true;
  was_full_ = false;
  return true;
}

// Skips zero padding after a gzip member, as the gzip program does, because tapes and block devices
// pad files with zeros. Returns false at the end of the input.
bool decompressed_source::pass_padding() {
  if (in_.empty() && !refill()) return false;
  if (compression_ != compression::gzip || in_.front() != std::byte{0}) return true;
  do {
    if (!std::ranges::all_of(in_, [](std::byte each) { return each == std::byte{0}; })) {
      fail("gzip data with other data after the zero padding that follows a member");
    }
    in_ = {};
  } while (refill());
  return false;
}

bool decompressed_source::refill() {
  const std::size_t n = ended_ ? 0 : compressed_->read(buffer_);
  ended_ = n == 0;
  in_ = std::span(buffer_).first(n);
  return n != 0;
}

// Decompresses the current unit until it yields text, ends, or turns out to be damaged.
void decompressed_source::decompress(std::span<std::byte>& out) {
  const std::size_t room = out.size();
  while (out.size() == room) {
    if (in_.empty() && !was_full_) (void)refill();
    const std::size_t in_before = in_.size();
    const decoder::step step = decoder_->decode(in_, out, ended_);
    was_full_ = out.empty();
    if (!step.problem.empty()) {
      problem_ = std::string("damaged ") + decoder_->name() + " data: " + step.problem;
      return;
    }
    if (!step.refusal.empty()) {
      problem_ = step.refusal;
      refused_ = true;
      return;
    }
    if (step.ended) {
      inside_ = false;
      return;
    }
    if (ended_ && in_.size() == in_before && out.size() == room) {
      problem_ = std::string(decoder_->name()) + " data is truncated";
      return;
    }
  }
}

// Called after all text before the next restart point was decompressed. Decodes the remaining
// compressed data before that point. Fails if this data yields more text.
void decompressed_source::reach_point() {
  const std::size_t points = later_.size();
  std::array<std::byte, 1> spare{};
  while (problem_.empty() && later_.size() == points) {
    std::span<std::byte> out = spare;
    if (!inside_ && !next_unit()) break;
    if (later_.size() != points) break;
    decompress(out);
    if (out.empty()) {
      fail("a member or frame holds more text than the size stored in the compressed file");
    }
  }
  if (!problem_.empty()) fail(problem_);
}

// Called between two units. Removes the restart points at or before the current compressed offset.
// Fails if a removed point is not exactly the current place.
void decompressed_source::check_points() {
  const std::uint64_t compressed = compressed_->position_bytes() - in_.size();
  while (!later_.empty() && later_.front().compressed_offset <= compressed) {
    if (later_.front() != restart_point{compressed, text_}) {
      fail("a member or frame does not end where the compressed file says");
    }
    later_ = later_.subspan(1);
  }
}

void decompressed_source::fail(const std::string& problem) const {
  if (refused_) {
    throw config_error(name_.string() + ": " + problem + " (after " + std::to_string(text_) +
                       " decompressed bytes)");
  }
  throw format_error(name_, text_, problem + "; the offset counts decompressed bytes");
}

}  // namespace millrace::preprocess
