// SPDX-License-Identifier: Apache-2.0
#include "delta_decoder.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <millrace/formats/detail/varint.hpp>

#include "page_reader.hpp"
#include "run_decoder.hpp"

namespace millrace::parquet::detail {

delta_decoder::delta_decoder(std::span<const char> bytes, const place& where)
    : where_(&where), at_(bytes.data()), end_(bytes.data() + bytes.size()) {
  const std::uint64_t block_values = varint();
  miniblocks_ = varint();
  left_ = varint();
  last_ = formats::from_zigzag(varint());
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  if (miniblocks_ == 0 || block_values > most || block_values % miniblocks_ != 0 ||
      block_values / miniblocks_ % 8 != 0 || block_values == 0) {
    where_->fail("a page with delta encoding has blocks of " + std::to_string(block_values) +
                 " numbers in " + std::to_string(miniblocks_) + " parts, which is not allowed");
  }
  miniblock_values_ = block_values / miniblocks_;
  next_miniblock_ = miniblocks_;
}

std::uint64_t delta_decoder::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == end_) where_->fail("a page with delta encoding ends too early");
    const auto byte = static_cast<unsigned char>(*at_++);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  where_->fail("a page with delta encoding has a number of more than 64 bits");
}

void delta_decoder::next_block() {
  least_ = formats::from_zigzag(varint());
  if (miniblocks_ > static_cast<std::uint64_t>(end_ - at_)) {
    where_->fail("a page with delta encoding ends too early");
  }
  widths_ = at_;
  at_ += miniblocks_;
  next_miniblock_ = 0;
}

void delta_decoder::next_miniblock() {
  if (next_miniblock_ == miniblocks_) next_block();
  width_ = static_cast<unsigned char>(widths_[next_miniblock_++]);
  if (width_ > 64) where_->fail("a page with delta encoding has numbers of more than 64 bits");
  const std::uint64_t bytes = miniblock_values_ / 8 * width_;
  if (bytes > static_cast<std::uint64_t>(end_ - at_)) {
    where_->fail("a page with delta encoding ends too early");
  }
  packed_ = at_;
  first_bit_ = 0;
  at_ += bytes;
  miniblock_left_ = miniblock_values_;
}

void delta_decoder::read(std::uint64_t* out, std::size_t count) {
  if (count > left_) where_->fail("a page with delta encoding has too few numbers");
  if (count == 0) return;
  left_ -= count;
  if (is_first_) {
    is_first_ = false;
    *out++ = last_;
    --count;
  }
  while (count != 0) {
    if (miniblock_left_ == 0) next_miniblock();
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(count, miniblock_left_));
    const std::uint64_t mask = width_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width_) - 1;
    for (std::size_t i = 0; i < n; ++i) {
      const char* byte = packed_ + first_bit_ / 8;
      const unsigned shift = first_bit_ % 8;
      std::uint64_t difference = load_word(byte) >> shift;
      if (shift + width_ > 64) difference |= load_word(byte + 8) << (64 - shift);
      last_ += least_ + (difference & mask);
      out[i] = last_;
      first_bit_ += width_;
    }
    out += n;
    count -= n;
    miniblock_left_ -= n;
  }
}

std::span<const char> delta_decoder::rest() const {
  delta_decoder copy = *this;
  std::uint64_t left = left_ == 0 ? 0 : left_ - 1;  // the first number is in the header
  while (left != 0) {
    if (copy.next_miniblock_ == copy.miniblocks_ && copy.at_ == copy.end_) {
      where_->fail("a page with delta encoding ends too early");
    }
    copy.next_miniblock();
    left -= std::min(left, miniblock_values_);
  }
  return {copy.at_, static_cast<std::size_t>(copy.end_ - copy.at_)};
}

}  // namespace millrace::parquet::detail
