// SPDX-License-Identifier: Apache-2.0
#include "input/packed_source.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include <millrace/error.hpp>

namespace millrace::preprocess {
namespace {
constexpr std::size_t packed_chunk_bytes = std::size_t{256} << 10;
}

packed_source::packed_source(std::unique_ptr<byte_source> packed, compression packing,
                             std::filesystem::path name, restart_point from,
                             std::span<const restart_point> later, std::uint64_t most_window_bytes)
    : packed_(std::move(packed)),
      packing_(packing),
      name_(std::move(name)),
      decoder_(make_decoder(packing, name_.string(), most_window_bytes)),
      buffer_(packed_chunk_bytes),
      text_(from.text_offset),
      later_(later) {}

std::size_t packed_source::read(std::span<std::byte> out) {
  assert(!out.empty());
  if (!problem_.empty()) fail(problem_);
  if (!later_.empty()) {
    // Not beyond the next point, at which there is something to prove.
    const std::uint64_t up_to_point = later_.front().text_offset - text_;
    out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), up_to_point)));
  }
  std::span<std::byte> left = out;
  while (left.size() == out.size() && problem_.empty() && (inside_ || next_unit())) unpack(left);
  const std::size_t given = out.size() - left.size();
  text_ += given;
  if (given == 0 && !problem_.empty()) fail(problem_);
  if (!later_.empty() && given != 0 && text_ == later_.front().text_offset) reach_point();
  return given;
}

// Takes in_ on to where a unit begins. No: there is none.
bool packed_source::next_unit() {
  if (!pass_padding()) {
    check_points();
    if (!later_.empty()) fail("the text ends before the size that the packed file tells");
    return false;
  }
  check_points();
  decoder_->start();
  inside_ = true;
  was_full_ = false;
  return true;
}

// Behind a gzip member: tapes and block devices pad with zeros. gzip itself takes them, too.
bool packed_source::pass_padding() {
  if (in_.empty() && !refill()) return false;
  if (packing_ != compression::gzip || in_.front() != std::byte{0}) return true;
  do {
    if (!std::ranges::all_of(in_, [](std::byte each) { return each == std::byte{0}; })) {
      fail("gzip data with zeros behind a member, and then something else");
    }
    in_ = {};
  } while (refill());
  return false;
}

bool packed_source::refill() {
  const std::size_t n = ended_ ? 0 : packed_->read(buffer_);
  ended_ = n == 0;
  in_ = std::span(buffer_).first(n);
  return n != 0;
}

// Unpacks the unit at hand until it gives something, or ends, or is found damaged.
void packed_source::unpack(std::span<std::byte>& out) {
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
      problem_ = std::string(decoder_->name()) + " data that is cut off";
      return;
    }
  }
}

// All text before the next point is out: unpacks on to that point, where nothing more may come.
void packed_source::reach_point() {
  const std::size_t points = later_.size();
  std::array<std::byte, 1> spare{};
  while (problem_.empty() && later_.size() == points) {
    std::span<std::byte> out = spare;
    if (!inside_ && !next_unit()) break;
    if (later_.size() != points) break;
    unpack(out);
    if (out.empty()) fail("a member or frame holds more text than the packed file tells");
  }
  if (!problem_.empty()) fail(problem_);
}

// Between two units: every point up to here must be here.
void packed_source::check_points() {
  const std::uint64_t packed = packed_->position_bytes() - in_.size();
  while (!later_.empty() && later_.front().packed_offset <= packed) {
    if (later_.front() != restart_point{packed, text_}) {
      fail("a member or frame does not end where the packed file tells");
    }
    later_ = later_.subspan(1);
  }
}

void packed_source::fail(const std::string& problem) const {
  if (refused_) {
    throw config_error(name_.string() + ": " + problem + " (after " + std::to_string(text_) +
                       " decompressed bytes)");
  }
  throw format_error(name_, text_, problem + ", after the decompressed bytes given");
}

}  // namespace millrace::preprocess
