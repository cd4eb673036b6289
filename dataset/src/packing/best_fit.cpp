// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/best_fit.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <millrace/dataset/detail/packing/room_index.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE void check(const best_fit_options& options) {
  constexpr std::int64_t most = 1 << 24;  // a packer uses 4 bytes per token of a row
  if (options.seq_len < 1 || options.seq_len > most) {
    throw config_error("seq_len is " + std::to_string(options.seq_len) + ", expected 1 to " +
                       std::to_string(most) + " to pack documents");
  }
  const std::int64_t multiple = options.pad_documents_to;
  if (multiple < 1 || options.seq_len % multiple != 0) {
    throw config_error("pad_documents_to is " + std::to_string(multiple) +
                       ", expected a number that divides seq_len, which is " +
                       std::to_string(options.seq_len));
  }
}

MILLRACE_INLINE best_fit::best_fit(best_fit_options options)
    : options_((check(options), options)),
      row_units_(static_cast<std::size_t>(options.seq_len / options.pad_documents_to)),
      rooms_(row_units_, static_cast<std::size_t>(packing_block)) {}

MILLRACE_INLINE std::int64_t best_fit::pack(std::span<const std::int64_t> lengths) {
  assert(static_cast<std::int64_t>(lengths.size()) <= packing_block);
  full_rows_ = 0;
  shared_rows_ = 0;
  row_of_.assign(lengths.size(), no_row);
  rests_.clear();
  const auto row = static_cast<std::uint64_t>(options_.seq_len);
  const auto unit = static_cast<std::uint64_t>(options_.pad_documents_to);
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    auto length = static_cast<std::uint64_t>(lengths[d]);
    if (length >= row) {  // this case is rare, and testing for it avoids a slow division
      full_rows_ += static_cast<std::int64_t>(length / row);
      length %= row;
    }
    if (length == 0) continue;
    const std::uint64_t units = unit == 1 ? length : (length + unit - 1) / unit;
    rests_.emplace_back(static_cast<std::uint32_t>(row_units_ - units),
                        static_cast<std::uint16_t>(d));
  }
  sort_longest_first();
  for (const auto& [lacking, document] : rests_) {
    const std::size_t share = row_units_ - lacking;
    room_index::found fit = rooms_.take(share);
    if (fit.row == room_index::no_row) {
      fit = {static_cast<std::uint32_t>(shared_rows_++), row_units_};
    }
    row_of_[document] = static_cast<std::uint16_t>(fit.row);
    if (fit.room > share) rooms_.put(fit.room - share, fit.row);
  }
  rooms_.clear();
  return full_rows_ + shared_rows_;
}

// A stable radix sort of 11 bits per pass. Takes a tenth of the time of a comparison sort.
MILLRACE_INLINE void best_fit::sort_longest_first() {
  sorting_.resize(rests_.size());
  for (unsigned shift = 0; row_units_ >> shift != 0; shift += 11) {
    std::array<std::uint32_t, 2049> begins{};
    for (const auto& rest : rests_) ++begins[(rest.first >> shift & 2047) + 1];
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    for (const auto& rest : rests_) sorting_[begins[rest.first >> shift & 2047]++] = rest;
    rests_.swap(sorting_);
  }
}

}  // namespace millrace::dataset
